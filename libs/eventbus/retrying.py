"""When and how often a message is tried again, and how its retry or dead letter gets written."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from libs.eventbus.policies import RetryPolicy
from libs.kernel import PermanentError

SQL = "sql"  # what is missing when an error does not say

log = structlog.get_logger(__name__)


def backoff_s(policy: RetryPolicy, attempt: int) -> float:
    """Seconds until the try after `attempt` (1, 2, …): exponential, half of it jitter.

    Never less than half: the tries must not be used up while a backend is away for a moment.
    Source ("equal jitter"): Brooker, "Exponential backoff and jitter", AWS Architecture Blog, 2015.
    """
    return jittered_s(min(policy.max_delay_s, policy.base_delay_s * 2.0 ** min(attempt - 1, 32)))


def jittered_s(ceiling_s: float) -> float:
    return random.uniform(ceiling_s / 2, ceiling_s)  # noqa: S311 - spreads load, guards nothing


@dataclass(slots=True)
class Holding:
    """Repeats what must not be lost until it works, holding the message meanwhile.

    While SQL is down nothing can be recorded, so the message stays uncommitted, its worker
    occupied, and its partition fills up and pauses. Only stopping the consumer ends the wait;
    then the message is delivered again.
    """

    first_delay_s: float = 0.2
    max_delay_s: float = 10.0
    held: int = field(default=0, init=False)  # messages that wait here now
    problem: str = field(default=SQL, init=False)  # what the last of them lacked

    async def until_done(self, write: Callable[[], Awaitable[None]], what: str) -> None:
        """Raises: PermanentError: `write` says that it can never work."""
        delay_s = self.first_delay_s
        self.held += 1
        try:
            while True:
                try:
                    return await write()
                except PermanentError:
                    raise
                except Exception as exc:  # noqa: BLE001 - whatever it is, the message is kept
                    self.problem = getattr(exc, "missing", "") or SQL
                    log.warning("message_held", step=what, error=repr(exc), retry_in_s=delay_s)
                await asyncio.sleep(random.uniform(0.5, 1.0) * delay_s)  # noqa: S311
                delay_s = min(delay_s * 2, self.max_delay_s)
        finally:
            self.held -= 1
