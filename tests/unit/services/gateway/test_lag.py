"""What `/v1/admin/lag` and its gauges say of queues and of those who should work them off."""

from typing import Any

import pytest
from prometheus_client import REGISTRY

from libs.eventbus.backlog import Backlog
from libs.kernel import new_id, now_us
from libs.storage.sql.workers import Worker, beat
from services.gateway.domain.lag import Workers, judge
from services.gateway.lag import LagReader, show
from tests.unit.services.gateway.conftest import Stage

PLANNED = "chat.planned.v1"


async def alive(stage: Stage, service: str, *missing: str) -> None:
    async with stage.gateway.db.work() as sql:
        await beat(sql, Worker(new_id(), service, "host", 1, now_us()), missing)


async def executor_lag(stage: Stage) -> dict[str, Any]:
    async with await stage.admin() as client:
        report = (await client.get("/v1/admin/lag")).json()
    found: dict[str, Any] = next(group for group in report["groups"] if group["topic"] == PLANNED)
    return found


async def test_messages_that_nobody_takes_are_a_stall_that_names_who_is_missing(
    stage: Stage,
) -> None:
    stage.backlogs.known["executor", (PLANNED, 2)] = Backlog(5, 125)
    found = await executor_lag(stage)
    assert (found["state"], found["waiting"]) == ("stalled", 120)
    assert found["verdict"] == "stalled: 120 waiting; no executor is running"


async def test_a_stall_says_what_the_living_process_waits_for(stage: Stage) -> None:
    stage.backlogs.known["executor", (PLANNED, 0)] = Backlog(0, 1)
    await alive(stage, "executor", "search index")
    found = await executor_lag(stage)
    assert found["verdict"] == "stalled: 1 waiting; executor is running, but waits for search index"


async def test_a_group_that_stopped_on_failing_messages_points_at_its_dead_letters(
    stage: Stage,
) -> None:
    stage.backlogs.known["executor", (PLANNED, 0)] = Backlog(0, 1)
    await alive(stage, "executor", "failing-messages")
    assert "`sluice dlq list`" in (await executor_lag(stage))["verdict"]


async def test_a_backlog_with_a_ready_worker_is_work(stage: Stage) -> None:
    stage.backlogs.known["executor", (PLANNED, 0)] = Backlog(0, 3)
    await alive(stage, "executor", "kafka")
    await alive(stage, "executor")
    assert (await executor_lag(stage))["state"] == "working"


async def test_lanes_and_retries_are_listed_beside_their_topic(stage: Stage) -> None:
    async with await stage.admin() as client:
        groups = (await client.get("/v1/admin/lag")).json()["groups"]
    parser = {group["topic"]: group["kind"] for group in groups if group["group"] == "parser"}
    assert parser == {
        "documents.uploaded.v1": "main",
        "documents.uploaded.v1.urgent": "lane",
        "documents.uploaded.v1.parser.retry": "retry",
    }


async def test_lag_without_a_consumer_raises_an_alarm_gauge(stage: Stage) -> None:
    stage.backlogs.known["executor", (PLANNED, 0)] = Backlog(0, 7)
    show(await LagReader(stage.gateway.db, stage.backlogs).read())
    of = {"group": "executor", "topic": PLANNED}
    assert REGISTRY.get_sample_value("group_stalled", of) == 1
    assert REGISTRY.get_sample_value("group_waiting", of) == 7
    await alive(stage, "executor")
    show(await LagReader(stage.gateway.db, stage.backlogs).read())
    assert REGISTRY.get_sample_value("group_stalled", of) == 0
    assert REGISTRY.get_sample_value("workers_ready", {"service": "executor"}) == 1


async def test_a_broker_that_is_away_is_said_so(stage: Stage) -> None:
    stage.backlogs.away = True
    async with await stage.admin() as client:
        assert (await client.get("/v1/admin/lag")).status_code == 503


@pytest.mark.parametrize(
    ("oldest_s", "words"),
    [
        (12.0, "working: 2 waiting or in work, the oldest for 12 s"),
        (7200.0, "slow: 2 waiting or in work, the oldest for 2.0 h"),
    ],
)
def test_a_verdict_says_how_long_the_oldest_waits(oldest_s: float, words: str) -> None:
    assert judge(2, oldest_s, Workers("parser", 1, 1)).words == words


def test_an_empty_queue_without_a_process_is_told_before_it_hurts() -> None:
    assert judge(0, None, Workers("parser", 0, 0)).words == "idle, but no parser is running"
