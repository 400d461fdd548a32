"""Holds a group's messages back while nothing works, and finds out when something does."""

import asyncio
from collections import deque

import structlog

from libs.eventbus.ordering import AbandonedError
from libs.eventbus.policies import GatePolicy

log = structlog.get_logger(__name__)


class Gate:
    """Stands before the handlers of one group member.

    The rule: a message is given up only while others work. So many failed tries in a row, whoever
    failed and why (a backend that is away, a bad deploy, one lonely message), shut the gate; few
    are enough where it is known what they lacked (room on the disk). What comes then waits here,
    and one message after another is let through at growing intervals; one that ends well opens the
    gate for all. A try that fails while the gate is shut is not held against its message: it comes
    back later and its tries begin anew.
    """

    def __init__(self, policy: GatePolicy) -> None:
        self.shut = False
        self.problem: str | None = None  # why it is shut, as readiness shows it
        self._policy = policy
        self._failed_in_a_row = self._lacking_in_a_row = 0
        self._interval_s = policy.first_probe_s
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._probe_is_due = False  # nobody was there to be let through
        self._timer: asyncio.TimerHandle | None = None

    def went_well(self) -> None:
        """A message came to a proper end."""
        self._failed_in_a_row = self._lacking_in_a_row = 0
        if self.shut:
            self._open()

    def went_wrong(self, problem: str, *, lacking: bool = False) -> None:
        """One try failed.

        Args:
            problem: What to say if the gate is shut for it.
            lacking: The error itself named this problem.
        """
        self._failed_in_a_row += 1
        self._lacking_in_a_row = self._lacking_in_a_row + 1 if lacking else 0
        if self.shut:
            self.problem = problem
        elif (
            self._failed_in_a_row >= self._policy.max_failed_in_a_row
            or self._lacking_in_a_row >= self._policy.max_lacking_in_a_row
        ):
            self.shut, self.problem = True, problem
            log.error("consumption_paused", problem=problem, tries=self._failed_in_a_row)
            self._interval_s = self._policy.first_probe_s
            self._plan_probe()

    async def turn(self) -> None:
        """Wait until the gate is open or this message is the probe. Raises: AbandonedError."""
        if self._probe_is_due:
            self._probe_is_due = False
            self._plan_probe()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def dismiss(self) -> None:
        """Send away who waits: the messages go to somebody else, or the process ends."""
        for turn in self._take_waiting():
            turn.set_exception(AbandonedError())

    def close(self) -> None:
        """No more probes."""
        if self._timer is not None:
            self._timer.cancel()

    def _open(self) -> None:
        log.info("consumption_resumed", waiting=len(self._waiting))
        self.close()
        self.shut, self.problem, self._probe_is_due = False, None, False
        for turn in self._take_waiting():
            turn.set_result(None)

    def _plan_probe(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._probe)
        self._interval_s = min(self._interval_s * 2, self._policy.max_probe_interval_s)

    def _probe(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # else it was cut off
                turn.set_result(None)
                self._plan_probe()
                return
        self._probe_is_due = True

    def _take_waiting(self) -> list[asyncio.Future[None]]:
        waiting = [turn for turn in self._waiting if not turn.done()]
        self._waiting.clear()
        return waiting
