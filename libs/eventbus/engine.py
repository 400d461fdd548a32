"""The engine behind every consumer: fed with records, it says what may be committed."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

import structlog

from libs.eventbus.gate import Gate
from libs.eventbus.ledger import Ledger
from libs.eventbus.message import Place, Record
from libs.eventbus.observing import Observer
from libs.eventbus.ordering import KeyedWorkers
from libs.eventbus.policies import Policies
from libs.eventbus.processing import Processor
from libs.eventbus.progress import Progress
from libs.eventbus.retrying import Holding
from libs.eventbus.subscriptions import Subscriptions

log = structlog.get_logger(__name__)


class Engine:
    """Runs the records of the partitions it is given. It knows no broker."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        ledger: Ledger,
        policies: Policies,
        lanes: dict[str, str],
        holding: Holding | None = None,
    ) -> None:
        """`lanes` maps every topic to the lane whose in-flight bound it shares."""
        self.gate = Gate(policies.gate)
        self.holding = holding or Holding()
        self._crash = asyncio.Event()
        self._error: BaseException | None = None
        self._flow = policies.flow
        self._lanes = lanes
        self._partitions: dict[Place, Progress] = {}
        by_type = {subscription.event_type: subscription for subscription in subscriptions}
        observer = Observer(ledger.group_id)
        processor = Processor(by_type, ledger, policies.retry, self.gate, self.holding, observer)
        self._workers = KeyedWorkers(processor.process, self._flow.max_in_flight, self._crashed)

    def feed(self, place: Place, records: Sequence[Record]) -> None:
        """Take over fetched records, which are in offset order."""
        progress = self._partitions.get(place)
        if progress is None:
            progress = self._partitions[place] = Progress(place, self._lanes[place[0]])
        self._workers.submit(progress, progress.take(records))

    def is_full(self, place: Place) -> bool:
        """Whether the partition must not be fetched from now."""
        progress = self._partitions.get(place)
        if progress is None or progress.has_gaps:
            return False
        return (
            progress.unfinished_count >= self._flow.max_buffered_per_partition
            or progress.window_count >= self._flow.max_uncommitted_per_partition
        )

    def offsets(self) -> dict[Place, int]:
        """What may be committed: for each partition the offset of its oldest unfinished record."""
        marks = {place: progress.next_offset for place, progress in self._partitions.items()}
        return {place: mark for place, mark in marks.items() if mark is not None}

    @property
    def finished_count(self) -> int:
        """Records finished so far in the partitions that are held."""
        return sum(progress.finished_count for progress in self._partitions.values())

    @property
    def unfinished_count(self) -> int:
        return sum(progress.unfinished_count for progress in self._partitions.values())

    @property
    def running_count(self) -> int:
        """Handlers that wait for something now."""
        return self._workers.suspended_count

    @property
    def problem(self) -> str | None:
        """What keeps messages from being handled now; None: nothing."""
        return self.holding.problem if self.holding.held else self.gate.problem

    async def crashed(self) -> None:
        """Wait for what must not happen. Raises: it."""
        await self._crash.wait()
        if self._error is not None:
            raise self._error

    async def pause(self, timeout_s: float) -> None:
        """Drop what has not started; wait up to `timeout_s` for what has."""
        held = set(self._partitions.values())
        self._workers.drop(held)
        self.gate.dismiss()
        running = self._workers.running(held)
        if running:
            await asyncio.wait(running, timeout=timeout_s)

    def keep_only(self, places: Collection[Place]) -> None:
        """Of the other partitions, which somebody else has or had, what runs is cut off."""
        gone = {p for place, p in self._partitions.items() if place not in places}
        self._workers.drop(gone)
        for task in self._workers.running(gone):
            task.cancel()
        for progress in gone:
            del self._partitions[progress.place]

    def passed(self, committed: Mapping[Place, int | None]) -> set[Place]:
        """Partitions of which another member has finished more than is finished here.

        A member that was frozen past its session comes back with marks that are no longer true.
        """
        marks = self.offsets()
        return {
            place
            for place, offset in committed.items()
            if offset is not None and place in marks and offset > marks[place]
        }

    def start_over(self) -> None:
        """The log is new: offsets mean nothing any more. What is running ends by itself."""
        self._workers.drop(set(self._partitions.values()))
        self._partitions.clear()

    async def quiet(self) -> None:
        """Wait until nothing is queued or running."""
        await self._workers.quiet()

    async def close(self) -> None:
        """Cut off what still runs; it counts as not done."""
        self.gate.close()
        await self._workers.cancel()

    def _crashed(self, error: BaseException) -> None:
        log.error("engine_crashed", exc_info=error)
        self._error = error
        self._crash.set()
