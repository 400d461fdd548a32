"""Holds a group's messages back while nothing works, and finds out when something does."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable

import structlog

from libs.eventbus.ordering import AbandonedError
from libs.eventbus.policies import GatePolicy

log = structlog.get_logger(__name__)


class Gate:
    """Stands before the handlers of one group member.

    The rule: a message is given up only while others work. After so many failed tries in a row,
    whoever failed and why (a backend that is away, a bad deploy), nothing works; few are enough
    where it is known what they lacked (room on the disk). A try that fails then is not held against
    its message, which comes back later and begins its tries anew.

    When the tries were those of several messages, or it is known what they lacked, the gate shuts
    too. What comes then waits here, and one message after another is let through at growing
    intervals; one that ends well opens the gate for all. Topics take turns, so an urgent message,
    or one of another kind, is tried next, however many wait elsewhere. One message that fails alone
    for whatever reason shuts nothing: that would hold up the others, and make the group unready,
    until something else happens to come.
    """

    def __init__(self, policy: GatePolicy) -> None:
        self.shut = False
        self.problem: str | None = None  # why it is shut, as readiness shows it
        self._policy = policy
        self._failed_in_a_row = self._lacking_in_a_row = 0
        self._failing: set[Hashable] = set()  # whose tries these were; two are enough to know
        self._interval_s = policy.first_probe_s
        # By topic, the one whose turn is longest ago first.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._probe_is_due = False  # nobody was there to be let through
        self._timer: asyncio.TimerHandle | None = None

    def went_well(self) -> None:
        """A message came to a proper end."""
        self._failed_in_a_row = self._lacking_in_a_row = 0
        self._failing.clear()
        if self.shut:
            self._open()

    def went_wrong(self, problem: str, of: Hashable, *, lacking: bool = False) -> None:
        """One try failed.

        Args:
            problem: What to say if the gate is shut for it.
            of: The message.
            lacking: The error itself named this problem.
        """
        self._failed_in_a_row += 1
        self._lacking_in_a_row = self._lacking_in_a_row + 1 if lacking else 0
        if len(self._failing) < 2:
            self._failing.add(of)
        if self.shut:
            self.problem = problem
        elif self._lacks_something or (self.nothing_works and len(self._failing) > 1):
            self.shut, self.problem = True, problem
            log.error("consumption_paused", problem=problem, tries=self._failed_in_a_row)
            self._interval_s = self._policy.first_probe_s
            self._plan_probe()

    @property
    def nothing_works(self) -> bool:
        """Whether a failed try says nothing about its message."""
        tries = self._failed_in_a_row
        return self._lacks_something or tries >= self._policy.max_failed_in_a_row

    @property
    def _lacks_something(self) -> bool:
        return self._lacking_in_a_row >= self._policy.max_lacking_in_a_row

    async def turn(self, topic: str) -> None:
        """Wait until the gate is open or this message is the probe. Raises: AbandonedError."""
        if topic not in self._waiting:
            self._waiting[topic] = deque()
            self._waiting.move_to_end(topic, last=False)
        if self._probe_is_due:
            self._probe_is_due = False
            self._waiting.move_to_end(topic)
            self._plan_probe()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[topic].append(turn)
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
        self.close()
        self.shut, self.problem, self._probe_is_due = False, None, False
        waiting = self._take_waiting()
        log.info("consumption_resumed", waiting=len(waiting))
        for turn in waiting:
            turn.set_result(None)

    def _plan_probe(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._probe)
        self._interval_s = min(self._interval_s * 2, self._policy.max_probe_interval_s)

    def _probe(self) -> None:
        for topic, turns in self._waiting.items():
            while turns:
                turn = turns.popleft()
                if not turn.done():  # else it was cut off
                    self._waiting.move_to_end(topic)
                    turn.set_result(None)
                    self._plan_probe()
                    return
        self._probe_is_due = True

    def _take_waiting(self) -> list[asyncio.Future[None]]:
        waiting = [turn for turns in self._waiting.values() for turn in turns if not turn.done()]
        self._waiting.clear()
        return waiting
