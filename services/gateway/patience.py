"""Turns that wait: their users are told what for, and after a bound that no answer came."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from sqlalchemy import RowMapping

from libs.kernel import ConflictError, new_id, now_us
from libs.observability.metrics import TURN_SECONDS
from libs.storage.sql import Database, UnitOfWork, leases, turns, workers
from libs.storage.sql.turn_events import TurnEvent, reply_of
from services.gateway.deps import Announce
from services.gateway.domain.lag import Workers
from services.gateway.lag import workers_of
from services.gateway.recovery import work_of
from services.gateway.stuck import StuckReader, Unmoved

log = structlog.get_logger(__name__)

TELL_AFTER_S = 10.0
LOOK_EVERY_S = 5.0
PAGE = 200
LEASE_TTL_S = 5.0  # within one unit of work, which is far shorter
_LATE = "No answer came within the time that a question may wait{}. Please ask again later."


@dataclass(frozen=True, slots=True)
class _Waiting:
    """One turn that nobody works on, and what it lacks."""

    turn: RowMapping
    reason: str  # as `sluice stuck` gives it
    lacks: list[str]  # services or backends; empty: nothing known is missing

    @property
    def status(self) -> dict[str, Any]:
        """Says `waiting` and what for."""
        told = {"turn_id": self.turn["id"], "status": "waiting"}
        return told | {"reason": self.reason, "for": self.lacks}

    @property
    def end(self) -> turns.Outcome:
        cause = f": waited for {', '.join(self.lacks)}" if self.lacks else ""
        error = {"reason": "no-answer-in-time", "detail": _LATE.format(cause), "for": self.lacks}
        return turns.Outcome("failed", error=error)


class Patience:
    """Looks after turns that have not moved. A turn that a worker has in hand is left alone.

    It writes under the turn's lease, taken and given back in one unit of work, so a worker that
    takes the turn up sees what was written. Any number of gateways may do it: a status that was
    told is not told again.

    Args:
        give_up_after_s: Without progress; 0: never.
    """

    def __init__(
        self,
        db: Database,
        stuck: StuckReader,
        announce: Announce,
        *,
        give_up_after_s: float,
        tell_after_s: float = TELL_AFTER_S,
    ) -> None:
        self._db = db
        self._stuck = stuck
        self._announce = announce
        self._give_up_after_s = give_up_after_s
        self._tell_after_s = tell_after_s
        self._holder = new_id()

    async def look(self) -> None:
        """One pass over every tenant's open turns. Raises: TransientError."""
        after = ""
        while True:
            async with self._db.reading() as sql:
                found = await turns.unfinished(sql, after, PAGE)
                living = await workers.living(sql)
            if late := [turn for turn in found if _idle_s(turn) >= self._tell_after_s]:
                await self._look_at(late, living)
            if len(found) < PAGE:
                return
            after = found[-1]["id"]

    async def _look_at(self, late: Sequence[RowMapping], living: Collection[RowMapping]) -> None:
        explained = await self._stuck.explained([Unmoved("turn", t, work_of(t)) for t in late])
        for each, why in explained:
            lacks = _lacks(workers_of(living, each.work.group_id))
            try:
                event = await self._write(_Waiting(each.row, why.reason, lacks))
            except ConflictError as exc:  # somebody works on it after all
                log.info("turn_not_waiting", turn_id=each.row["id"], why=str(exc))
                continue
            if event is not None:
                reply = reply_of(each.row["tenant"], event)
                await self._announce(reply, each.row["reply_partition"])

    async def _write(self, waiting: _Waiting) -> TurnEvent | None:
        """Raises: ConflictError."""
        tenant, turn_id = waiting.turn["tenant"], waiting.turn["id"]
        lease = f"turn:{turn_id}"
        async with self._db.work() as sql:
            if not await leases.acquire(sql, lease, self._holder, ttl_s=LEASE_TTL_S):
                return None
            event = None
            if 0 < self._give_up_after_s <= _idle_s(await turns.load_turn(sql, tenant, turn_id)):
                event = await turns.finish(sql, tenant, turn_id, waiting.end)
            elif await _last(sql, tenant, turn_id) != waiting.status:
                status = ("status", waiting.status)
                event = (await turns.append_events(sql, tenant, turn_id, [status]))[0]
            await leases.release(sql, lease, self._holder)
        if event is not None and event.terminal:
            log.warning(
                "turn_given_up", turn_id=turn_id, reason=waiting.reason, lacks=waiting.lacks
            )
            TURN_SECONDS.labels("failed").observe(
                (now_us() - int(waiting.turn["created_at"])) / 1e6
            )
        return event


def _idle_s(turn: RowMapping) -> float:
    """Since its last progress: asked, planned, or a step of its answer done."""
    return (now_us() - int(turn["updated_at"])) / 1e6


async def _last(sql: UnitOfWork, tenant: str, turn_id: str) -> Mapping[str, Any]:
    newest = await turns.last_seq(sql, turn_id)
    events = await turns.events_after(sql, tenant, turn_id, newest - 1)
    return events[0].data if events else {}


def _lacks(workers_: Workers) -> list[str]:
    if workers_.ready:
        return []
    return list(workers_.missing) or [workers_.service]
