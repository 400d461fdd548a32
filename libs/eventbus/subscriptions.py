"""What a service reads: event types, each with the function that handles it."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from libs.observability import redacted

E = TypeVar("E")

MAX_DETAIL_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a message's work ended without success."""

    reason: str  # kebab-case code
    detail: str
    attempts: int
    permanent: bool  # False: retries were used up or the handler has a bug

    def __post_init__(self) -> None:
        # It travels in events and rows and is shown: what an exception says may be as large as its
        # input, or name a server with its password.
        detail = redacted(self.detail[: 2 * MAX_DETAIL_CHARS])
        if len(detail) > MAX_DETAIL_CHARS:
            detail = detail[: MAX_DETAIL_CHARS - 1] + "…"
        object.__setattr__(self, "detail", detail)


Handler = Callable[[E], Awaitable[None]]
FailureHandler = Callable[[E, Failure], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Subscription:
    event_type: type[Any]
    handle: Handler[Any]
    failed: FailureHandler[Any] | None


class Subscriptions:
    """The event types one consumer group reads; each type has exactly one handler.

    A handler takes one typed event, is safe to repeat and returns nothing: what it announces it
    emits into the unit of work that changes the state. `failed` records a final failure (a
    permanent error, or retries used up) in the entity's own state; it must be safe to repeat too.
    """

    def __init__(self) -> None:
        self._by_type: dict[type[Any], Subscription] = {}

    def on(
        self,
        event_type: type[E],
        handle: Handler[E],
        *,
        failed: FailureHandler[E] | None = None,
    ) -> Self:
        if event_type in self._by_type:
            raise ValueError(f"{event_type.__name__} already has a handler")
        self._by_type[event_type] = Subscription(event_type, handle, failed)
        return self

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._by_type.values())
