"""Blocking calls in threads that neither the event loop nor the process's end waits for."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class DaemonCalls:
    """Runs blocking calls on daemon threads, a bounded number at a time.

    An executor's threads are waited for when a process ends, so a call to a server that hangs
    would hold it up. Here the caller's patience ends the waiting; the thread ends by the time
    limits of the call itself, and keeps its place until then.
    """

    def __init__(self, most: int) -> None:
        self._free = asyncio.Semaphore(most)

    async def run(
        self, call: Callable[[], T], *, within_s: float, undo: Callable[[T], Any] | None = None
    ) -> T:
        """The call's result or error.

        Args:
            undo: Takes, in a thread, the result that nobody waits for any more.

        Raises: TimeoutError: no result within `within_s` seconds, waiting for a thread included.
        """
        async with asyncio.timeout(within_s):
            await self._free.acquire()
            thread = self._start(call)
            waiting = asyncio.wrap_future(thread)
            if undo is not None:
                waiting.add_done_callback(partial(_undo_unwanted, thread, undo))
            return await waiting

    def forget(self, call: Callable[[], Any]) -> None:
        """Do it in a thread and never mind when, or how it ends."""
        _in_thread(call)

    def _start(self, call: Callable[[], T]) -> Future[T]:
        loop = asyncio.get_running_loop()
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # a caller that goes away does not cancel it

        def work() -> None:
            try:
                future.set_result(call())
            except BaseException as exc:  # noqa: BLE001 - whoever waits gets it
                future.set_exception(exc)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._free.release)

        threading.Thread(target=work, name="object-store", daemon=True).start()
        return future


def _in_thread(call: Callable[[], Any]) -> None:
    def work() -> None:
        with contextlib.suppress(Exception):
            call()

    threading.Thread(target=work, name="object-store", daemon=True).start()


def _undo_unwanted(
    thread: Future[T], undo: Callable[[T], Any], waiting: "asyncio.Future[T]"
) -> None:
    if not waiting.cancelled():
        return

    def undone(done: Future[T]) -> None:
        if done.exception() is None:
            _in_thread(partial(undo, done.result()))

    thread.add_done_callback(undone)
