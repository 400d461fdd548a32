"""Work on a document that stops soon after nobody waits for it any more."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

import structlog

from libs.contracts import DocumentControl
from libs.kernel import TransientError, end_tasks

log = structlog.get_logger(__name__)

T = TypeVar("T")


class DocumentWatch:
    """Ends work that a cancel, a delete or a newer generation has made useless.

    SQL is the truth and is asked every `check_s` seconds; the broadcast only makes it quick.
    """

    def __init__(self, check_s: float = 1.0) -> None:
        self._check_s = check_s
        self._at_work: dict[str, set[asyncio.Event]] = defaultdict(set)

    async def on_control(self, event: DocumentControl) -> None:
        """The broadcast: whatever it says, SQL is asked now."""
        for woken in self._at_work.get(event.document_id, ()):
            woken.set()

    async def while_due(
        self, document_id: str, work: Coroutine[Any, Any, T], is_due: Callable[[], Awaitable[bool]]
    ) -> T | None:
        """The work's result; None, with the work cancelled, once `is_due` says no.

        A moment without SQL ends nothing.
        """
        task = asyncio.create_task(work)
        try:
            with self._woken(document_id) as woken:
                while not await self._ended(task, woken):
                    if not await _still(is_due):
                        log.info("document_work_stopped", document_id=document_id)
                        return None
            return task.result()
        finally:
            await end_tasks(task)

    async def _ended(self, task: asyncio.Task[Any], woken: asyncio.Event) -> bool:
        """Wait for the next look at SQL; True: the work has ended before."""
        woken.clear()
        wake = asyncio.create_task(woken.wait())
        try:
            await asyncio.wait(
                {task, wake}, timeout=self._check_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            wake.cancel()
        return task.done()

    @contextlib.contextmanager
    def _woken(self, document_id: str) -> Iterator[asyncio.Event]:
        woken = asyncio.Event()
        self._at_work[document_id].add(woken)
        try:
            yield woken
        finally:
            self._at_work[document_id].discard(woken)
            if not self._at_work[document_id]:
                del self._at_work[document_id]


async def _still(is_due: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await is_due()
    except TransientError as exc:
        log.warning("document_watch_blind", error=str(exc))
        return True
