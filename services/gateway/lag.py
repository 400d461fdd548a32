"""Backlogs of every consumer group, beside the processes that should work them off."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import structlog
from sqlalchemy import RowMapping

from libs.contracts import load_topics, retry_topic
from libs.contracts.topology import dead_letter_topic, groups_of
from libs.eventbus.backlog import Backlog, Backlogs
from libs.eventbus.message import Place
from libs.kernel import TransientError, now_us
from libs.observability.metrics import GROUP_STALLED, GROUP_WAITING, WORKERS_READY
from libs.storage.sql import Database, dead_letters, outbox, workers
from services.gateway.domain.lag import Verdict, Workers, judge

log = structlog.get_logger(__name__)

WATCH_S = 15.0


@dataclass(frozen=True, slots=True)
class GroupTopic:
    """A topic that a group reads."""

    group: str
    topic: str
    kind: Literal["main", "lane", "retry"]
    partitions: int

    @property
    def places(self) -> list[Place]:
        return [(self.topic, partition) for partition in range(self.partitions)]


@dataclass(frozen=True, slots=True)
class Lag:
    """One group on one topic."""

    of: GroupTopic
    waiting: int
    oldest_s: float | None  # since the oldest that waits was sent; None: nothing waits, or unknown
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class DeadLetters:
    group: str
    topic: str  # the dead-letter topic
    unhandled: int


@dataclass(frozen=True, slots=True)
class LagReport:
    lags: list[Lag]
    workers: list[Workers]
    dead_letters: list[DeadLetters]
    unsent: outbox.Backlog

    @property
    def stalled(self) -> bool:
        return any(lag.verdict.is_alarm for lag in self.lags)


def group_topics() -> list[GroupTopic]:
    """Every topic that a group reads, lanes and retries included."""
    return list(_group_topics())


def _group_topics() -> Iterator[GroupTopic]:
    for topic in load_topics().values():
        for group in groups_of(topic):
            for lane in ("", *topic.lanes):
                yield GroupTopic(
                    group, topic.lane(lane), "lane" if lane else "main", topic.partitions
                )
            yield GroupTopic(group, retry_topic(topic.name, group), "retry", topic.partitions)


def workers_of(living: Collection[RowMapping], service: str) -> Workers:
    """What the heartbeats say of a service. A group has its service's name."""
    mine = [row for row in living if row["service"] == service]
    missing = sorted({name for row in mine for name in row["missing"]})
    return Workers(service, len(mine), sum(bool(row["ready"]) for row in mine), missing)


class LagReader:
    """Measures on demand."""

    def __init__(self, db: Database, backlogs: Backlogs) -> None:
        self._db = db
        self._backlogs = backlogs

    async def read(self, tenant: str | None = None) -> LagReport:
        """What waits now. Dead letters are counted as far as `tenant` may see them; None: all.

        Raises: TransientError when SQL or the broker is away.
        """
        wanted = group_topics()
        places: dict[str, list[Place]] = {}
        for each in wanted:
            places.setdefault(each.group, []).extend(each.places)
        found = await self._backlogs.of_groups(places)
        behind = {
            place: backlog.next_offset
            for backlogs in found.values()
            for place, backlog in backlogs.items()
            if backlog.waiting
        }
        async with self._db.reading() as sql:
            living = await workers.living(sql)
            unsent = await outbox.backlog(sql)
            sent_at = await outbox.oldest_sent(sql, behind)
            given_up = await dead_letters.unhandled(sql, tenant)
        lags = [_lag(each, found[each.group], sent_at, living) for each in wanted]
        services = sorted({each.group for each in wanted} | {row["service"] for row in living})
        return LagReport(
            lags, [workers_of(living, name) for name in services], _letters(given_up), unsent
        )


def _lag(
    each: GroupTopic,
    backlogs: Mapping[Place, Backlog],
    sent_at: Mapping[Place, int],
    living: Collection[RowMapping],
) -> Lag:
    waiting = sum(backlogs[place].waiting for place in each.places)
    oldest = min((sent_at[place] for place in each.places if place in sent_at), default=None)
    oldest_s = None if oldest is None else max(0.0, (now_us() - oldest) / 1e6)
    verdict = judge(waiting, oldest_s, workers_of(living, each.group))
    return Lag(each, waiting, oldest_s, verdict)


def _letters(given_up: Mapping[tuple[str, str], int]) -> list[DeadLetters]:
    return [
        DeadLetters(
            group, dead_letter_topic(topic.name, group), given_up.get((group, topic.name), 0)
        )
        for topic in load_topics().values()
        for group in groups_of(topic)
    ]


class LagWatch:
    """Keeps the gauges that alarms stand on."""

    def __init__(self, reader: LagReader, *, every_s: float = WATCH_S) -> None:
        self._reader = reader
        self._every_s = every_s

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                show(await self._reader.read())
            except TransientError as exc:
                log.info("lag_not_read", error=str(exc))
            await asyncio.sleep(self._every_s)


def show(report: LagReport) -> None:
    """Set the gauges."""
    for lag in report.lags:
        GROUP_WAITING.labels(lag.of.group, lag.of.topic).set(lag.waiting)
        GROUP_STALLED.labels(lag.of.group, lag.of.topic).set(lag.verdict.is_alarm)
    for each in report.workers:
        WORKERS_READY.labels(each.service).set(each.ready)
