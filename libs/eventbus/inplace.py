"""Runs a coroutine in a context of its own inside the task that awaits it."""

from collections.abc import Coroutine, Generator
from contextvars import Context
from typing import Any


class Resumed:
    """The rest of a coroutine whose first step, taken in place, yielded `waits_for`.

    Every step runs in `context`, so what it sets stays with it; the task is the awaiting one, so
    `asyncio.timeout`, task groups and cancellation inside the coroutine act on the right task.
    """

    __slots__ = ("_context", "_coroutine", "_waits_for")

    def __init__(
        self, coroutine: Coroutine[Any, Any, None], waits_for: Any, context: Context
    ) -> None:
        self._coroutine = coroutine
        self._waits_for = waits_for
        self._context = context

    def __await__(self) -> Generator[Any, Any, None]:
        run, send, throw = self._context.run, self._coroutine.send, self._coroutine.throw
        waits_for = self._waits_for
        while True:
            error: BaseException | None = None
            try:
                yield waits_for
            except BaseException as exc:  # noqa: BLE001 - it belongs to the coroutine
                error = exc
            try:
                waits_for = run(send, None) if error is None else run(throw, error)
            except StopIteration:
                return
