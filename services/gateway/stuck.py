"""Work that has not moved, and why: from SQL, the outbox, the broker's offsets and heartbeats."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import RowMapping

from libs.eventbus.backlog import Backlog, Backlogs
from libs.eventbus.message import Place
from libs.eventbus.reconciler import Unfinished
from libs.kernel import TransientError, now_us
from libs.service.unfinished import work_of as document_work
from libs.storage.sql import Database, UnitOfWork, leases, outbox, pages, turns, workers
from libs.storage.sql.document_states import RUNNING, DocumentState
from libs.storage.sql.epochs import load_epoch
from services.gateway.domain.standing import Way, Why, explain, explain_failure, may_help
from services.gateway.lag import workers_of
from services.gateway.recovery import work_of as turn_work

MOVING = (*RUNNING, DocumentState.DELETED)


@dataclass(frozen=True, slots=True)
class Unmoved:
    """A document, deletion or turn."""

    kind: Literal["document", "deletion", "turn"]
    row: RowMapping
    work: Unfinished

    @property
    def since_s(self) -> float:
        return max(0.0, (now_us() - int(self.row["updated_at"])) / 1e6)

    @property
    def name(self) -> str:
        return str(self.row["text"] if self.kind == "turn" else self.row["name"])


@dataclass(frozen=True, slots=True)
class Failed:
    """A document that ended in a failure."""

    row: RowMapping
    why: Why
    resumable: bool


class StuckReader:
    """Explains one tenant's work. Raises (every method): TransientError when SQL is away."""

    def __init__(self, db: Database, backlogs: Backlogs) -> None:
        self._db = db
        self._backlogs = backlogs

    async def unmoved(
        self, tenant: str, *, older_than_s: float, limit: int
    ) -> list[tuple[Unmoved, Why]]:
        """What is not final and did not move for `older_than_s`, the longest first."""
        before_us = now_us() - int(older_than_s * 1e6)
        async with self._db.reading() as sql:
            rows = await pages.unmoved_documents(
                sql, tenant, MOVING, before_us=before_us, limit=limit
            )
            asked = await pages.unmoved_turns(
                sql, tenant, turns.OPEN_STATES, before_us=before_us, limit=limit
            )
        works = [found for row in rows if (found := of_document(row)) is not None]
        works += [Unmoved("turn", row, turn_work(row)) for row in asked]
        works.sort(key=lambda each: each.row["updated_at"])
        return await self.explained(works[:limit])

    async def failed(
        self, tenant: str, *, limit: int, after: tuple[int, str] | None = None
    ) -> list[Failed]:
        """Failed documents, the oldest failure first, from `after` (exclusive) on."""
        async with self._db.reading() as sql:
            rows = await pages.unmoved_documents(
                sql, tenant, [DocumentState.FAILED], before_us=now_us(), limit=limit, after=after
            )
        return [
            Failed(
                row,
                explain_failure(row["stage"], row["reason"], row["detail"]),
                may_help(row["stage"], row["reason"]),
            )
            for row in rows
        ]

    async def explained(self, works: Sequence[Unmoved]) -> list[tuple[Unmoved, Why]]:
        """Each with why it waits. A broker that is away leaves only places in queues unknown."""
        async with self._db.reading() as sql:
            rows = await _newest(sql, works)
            leased = await leases.live(sql, {w.work.lease for w in works if w.work.lease})
            living = await workers.living(sql)
            epoch = await load_epoch(sql)
        known = await self._ask_broker(works, rows)
        return [
            (
                each,
                explain(
                    _way(rows.get(each.row["id"]), epoch, known.get(each.work.group_id, {})),
                    workers_of(living, each.work.group_id),
                    leased=each.work.lease in leased,
                ),
            )
            for each in works
        ]

    async def _ask_broker(
        self, works: Sequence[Unmoved], rows: Mapping[str, RowMapping]
    ) -> Mapping[str, Mapping[Place, Backlog]]:
        places: dict[str, set[Place]] = {}
        for each in works:
            row = rows.get(each.row["id"])
            if row is not None and row["sent_at"] is not None:
                place = (row["topic"], row["partition"])
                places.setdefault(each.work.group_id, set()).add(place)
        if not places:
            return {}
        try:
            return await self._backlogs.of_groups(places)
        except TransientError:
            return {}


def of_document(row: RowMapping) -> Unmoved | None:
    """None: the document waits for nothing."""
    work = document_work(row)
    if work is None:
        return None
    deleted = row["state"] == DocumentState.DELETED
    return Unmoved("deletion" if deleted else "document", row, work)


async def _newest(sql: UnitOfWork, works: Collection[Unmoved]) -> dict[str, RowMapping]:
    """By the id of the work: its newest outbox row."""
    by_topics: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for each in works:
        ids = by_topics.setdefault(each.work.topics, {}).setdefault(each.work.key, [])
        ids.append(each.row["id"])
    found: dict[str, RowMapping] = {}
    for topics, keys in by_topics.items():
        for key, row in (await outbox.newest_by_key(sql, topics, keys)).items():
            found.update(dict.fromkeys(keys[key], row))
    return found


def _way(row: RowMapping | None, epoch: str | None, known: Mapping[Place, Backlog]) -> Way | None:
    if row is None:
        return None
    now, headers = now_us(), row["headers"]
    attempt = str(headers.get("attempt", "1"))
    backlog = known.get((row["topic"], row["partition"]))
    before = None if backlog is None else row["offset"] - backlog.next_offset
    return Way(
        sent=row["sent_at"] is not None,
        age_s=(now - row["created_at"]) / 1e6,
        due_in_s=(row["not_before"] - now) / 1e6,
        is_retry=row["topic"].endswith(".retry"),
        attempt=int(attempt) if attempt.isdecimal() else 1,
        error=str(headers.get("retry_error", "")),
        log_is_lost=row["broker_epoch"] != epoch,
        before=before,
    )
