"""Keyed workers: one key stays in order, different keys run in parallel."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Hashable, Sequence
from contextvars import copy_context
from time import perf_counter
from typing import Any

from libs.eventbus.inplace import Resumed
from libs.eventbus.message import Record
from libs.eventbus.progress import Progress
from libs.kernel import end_tasks

SLICE_S = 0.005  # how long handlers that never suspend may keep the event loop

Item = tuple[Record, Progress]
Process = Callable[[Record], Coroutine[Any, Any, None]]


class AbandonedError(Exception):
    """The message is left unfinished on purpose; it will be delivered again."""


class Lane:
    """Items whose keys are free, and the workers that run them: at most `limit` at once."""

    __slots__ = ("handing_over", "limit", "ready", "worker_count")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.ready: deque[Item] = deque()
        self.worker_count = 0
        self.handing_over = False


class KeyedWorkers:
    """Runs `process` for every submitted record, in order for each key across all partitions.

    A worker is a task that runs item after item for as long as their handlers do not suspend, so
    quick handlers cost no task each. When one suspends, another worker goes on with the rest.
    """

    def __init__(
        self, process: Process, limit: int, crashed: Callable[[BaseException], None]
    ) -> None:
        """`crashed` hears of an error that `process` let out, which it never should."""
        self._crashed = crashed
        self._process = process
        self._limit = limit
        self._lanes: dict[str, Lane] = {}
        # A key is in here while one of its items is ready or running; its others wait.
        self._keys: dict[Hashable, deque[Item] | None] = {}
        self._suspended: dict[asyncio.Task[Any], Progress] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()

    def submit(self, progress: Progress, records: Sequence[Record]) -> None:
        lane = self._lanes.get(progress.lane)
        if lane is None:
            lane = self._lanes[progress.lane] = Lane(self._limit)
        keys, ready = self._keys, lane.ready
        for record in records:
            key = record.key or progress
            if key not in keys:
                keys[key] = None
                ready.append((record, progress))
            elif (waiting := keys[key]) is None:
                keys[key] = deque([(record, progress)])
            else:
                waiting.append((record, progress))
        if keys:
            self._quiet.clear()
        self._hand_over_soon(lane)

    def drop(self, revoked: Collection[Progress]) -> None:
        """Forget what these partitions have queued; what is running goes on."""
        for key, waiting in self._keys.items():
            if waiting:
                self._keys[key] = _without(waiting, revoked)[0] or None
        for lane in self._lanes.values():
            lane.ready, dropped = _without(lane.ready, revoked)
            for record, progress in dropped:
                self._release(record.key or progress)

    def running(self, of: Collection[Progress]) -> set[asyncio.Task[Any]]:
        """The tasks that run a suspended handler for one of these partitions."""
        return {task for task, progress in self._suspended.items() if progress in of}

    @property
    def suspended_count(self) -> int:
        return len(self._suspended)

    async def quiet(self) -> None:
        """Wait until nothing is queued or running."""
        await self._quiet.wait()

    async def cancel(self) -> None:
        """Stop everything at once. Nothing that is cut off counts as finished."""
        for lane in self._lanes.values():
            lane.ready.clear()
        self._keys.clear()
        await end_tasks(*self._tasks)
        self._quiet.set()

    def _hand_over_soon(self, lane: Lane) -> None:
        if not lane.handing_over:
            lane.handing_over = True
            asyncio.get_running_loop().call_soon(self._hand_over, lane)

    def _hand_over(self, lane: Lane) -> None:
        lane.handing_over = False
        if lane.ready and lane.worker_count < lane.limit:
            lane.worker_count += 1
            task = asyncio.create_task(self._work(lane))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crashed(error)

    async def _work(self, lane: Lane) -> None:
        try:
            until = perf_counter() + SLICE_S
            while lane.ready and perf_counter() < until:
                # Runs as soon as this task suspends, or ends because its slice is over.
                self._hand_over_soon(lane)
                record, progress = lane.ready.popleft()
                try:
                    if (rest := self._start(record)) is not None:
                        await self._resume(progress, rest)
                        until = perf_counter() + SLICE_S
                    progress.finish(record.offset)
                except AbandonedError:
                    progress.forget([record.offset])
                finally:
                    self._release(record.key or progress)
        finally:
            lane.worker_count -= 1
            if lane.ready:
                self._hand_over_soon(lane)

    def _start(self, record: Record) -> Resumed | None:
        """Process one record in a context of its own; what remains if its handler suspended."""
        context = copy_context()
        coroutine = self._process(record)
        try:
            waits_for = context.run(coroutine.send, None)
        except StopIteration:
            return None
        return Resumed(coroutine, waits_for, context)

    async def _resume(self, progress: Progress, rest: Resumed) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - for the type checker
        self._suspended[task] = progress
        try:
            await rest
        finally:
            del self._suspended[task]

    def _release(self, key: Hashable) -> None:
        waiting = self._keys.get(key)
        if waiting:
            record, progress = waiting.popleft()
            lane = self._lanes[progress.lane]
            lane.ready.append((record, progress))
            self._hand_over_soon(lane)
            return
        self._keys.pop(key, None)
        if not self._keys:
            self._quiet.set()


def _without(items: deque[Item], revoked: Collection[Progress]) -> tuple[deque[Item], list[Item]]:
    kept = deque(item for item in items if item[1] not in revoked)
    dropped = [item for item in items if item[1] in revoked]
    for record, progress in dropped:
        progress.forget([record.offset])
    return kept, dropped
