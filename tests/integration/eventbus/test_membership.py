"""Groups, rebalances, lanes and new logs on each broker."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
import structlog
from prometheus_client import REGISTRY

from libs.contracts import OutgoingRecord, TurnControl, to_record
from libs.eventbus import Consumer, FlowPolicy, Listener
from libs.eventbus.reporting import report_nothing
from tests.integration.eventbus.kafka_bus import GROUP, SESSION_S, KafkaBus
from tests.suites.eventbus import (
    POLICIES,
    TOPIC,
    Recorder,
    record,
    until,
    until_committed,
    uploaded,
)

pytestmark = pytest.mark.integration


async def test_a_step_longer_than_every_time_limit_neither_leaves_nor_starts_twice(
    bus: KafkaBus, recorder: Recorder
) -> None:
    """Even while its partition is held back because it is full."""
    bus.kafka = replace(bus.kafka, max_poll_interval_s=1.0)
    recorder.gates["long"] = asyncio.Event()
    await bus.start(recorder.subscriptions())
    await bus.publish(*(record("long", n) for n in range(30)), record("a", 0, partition=1))
    await until(lambda: ("long", 0) in recorder.started and bus.unfinished() >= 20)
    joined = seen("eventbus_rebalances_total")
    for generation in range(1, 6):
        await asyncio.sleep(SESSION_S / 2)
        await bus.publish(record("a", generation, partition=1))
    await until(lambda: recorder.done == [("a", generation) for generation in range(6)])
    recorder.gates["long"].set()
    await until_committed(bus, 36)
    assert [name for name in recorder.started if name[0] == "long"] == [
        ("long", n) for n in range(30)
    ]
    assert seen("eventbus_rebalances_total") == joined


def seen(metric: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(metric, {"group": GROUP, **labels})


async def test_a_group_that_never_committed_starts_at_the_earliest_message_and_says_so(
    bus: KafkaBus, recorder: Recorder
) -> None:
    await bus.publish(*(record(f"d{n}", partition=n % 2) for n in range(6)))
    with structlog.testing.capture_logs() as logs:
        await bus.start(recorder.subscriptions())
        await until_committed(bus, 6)
        await bus.stop()
        await bus.start(recorder.subscriptions())
        await bus.publish(record("later"))
        await until_committed(bus, 7)
    assert sorted(name for name, _ in recorder.done) == [*(f"d{n}" for n in range(6)), "later"]
    told = [entry["partitions"] for entry in logs if entry["event"] == "reading_from_earliest"]
    assert told == [18, 16]  # of the topic, its lane and its retries; two have offsets then


async def test_when_a_member_joins_everything_is_handled_and_keys_stay_in_order(
    bus: KafkaBus, recorder: Recorder
) -> None:
    recorder.step_s = 0.02
    await bus.start(recorder.subscriptions())
    records = [record(f"d{n % 12}", n, partition=n % 6) for n in range(360)]
    await bus.publish(*records[:240])
    await until(lambda: len(recorder.done) > 20)
    reports: list[str | None] = []
    second, stop_second = another(bus, recorder, reports.append), asyncio.Event()
    running = asyncio.create_task(second.run(stop_second))
    await until(lambda: reports[-1:] == [None])
    await bus.publish(*records[240:])
    await until_committed(bus, 360)
    assert second.engine.finished_count > 0
    stop_second.set()
    await running
    for key in {name for name, _ in recorder.done}:
        assert {n for k, n in recorder.done if k == key} == {
            n for n in range(360) if f"d{n % 12}" == key
        }
        firsts = list(dict.fromkeys(n for k, n in recorder.done if k == key))
        assert firsts == sorted(firsts)


async def test_after_a_member_leaves_the_other_takes_over(
    bus: KafkaBus, recorder: Recorder
) -> None:
    await bus.start(recorder.subscriptions())
    second, stop_second = another(bus, recorder), asyncio.Event()
    running = asyncio.create_task(second.run(stop_second))
    await until(lambda: bus.problem() is None)
    stop_second.set()
    await running
    await bus.publish(*(record(f"d{n}", n, partition=n) for n in range(6)))
    await until_committed(bus, 6)
    assert len(recorder.done) == 6


def another(
    bus: KafkaBus, recorder: Recorder, report: Callable[[str | None], None] = report_nothing
) -> Consumer:
    """One more member of the group."""
    subscriptions = recorder.subscriptions()
    return Consumer(
        bus.kafka, bus.db, subscriptions, group_id=GROUP, policies=POLICIES, report=report
    )


async def test_urgent_work_does_not_wait_behind_bulk(bus: KafkaBus, recorder: Recorder) -> None:
    recorder.gates = {f"bulk{n}": asyncio.Event() for n in range(40)}
    policies = replace(POLICIES, flow=FlowPolicy(max_in_flight=2, max_buffered_per_partition=5))
    consumer = Consumer(
        bus.kafka,
        bus.db,
        recorder.subscriptions(),
        group_id=GROUP,
        lanes=("", "urgent"),
        policies=policies,
    )
    stop = asyncio.Event()
    running = asyncio.create_task(consumer.run(stop))
    await bus.publish(*map(record, recorder.gates))
    await until(lambda: len(recorder.started) == 2)
    await bus.publish(to_record(uploaded("now"), lane="urgent"))
    await until(lambda: recorder.done == [("now", 1)])
    assert len(recorder.started) == 3
    for gate in recorder.gates.values():
        gate.set()
    stop.set()
    await running


async def test_a_new_log_is_read_from_its_beginning(bus: KafkaBus, recorder: Recorder) -> None:
    await bus.start(recorder.subscriptions())
    await bus.publish(*(record("old", n) for n in range(10)))
    await until_committed(bus, 10)
    await bus.restart_broker()
    await bus.publish(*(record("new", n) for n in range(20)))
    assert bus.consumer is not None
    bus.consumer.new_epoch()
    # What the member reads at its old place before it is told of the new log comes earlier.
    await until(lambda: {("new", n) for n in range(20)} <= set(recorder.done), within_s=60)
    await until_committed(bus, 20)


async def test_a_listener_hears_what_comes_and_after_a_new_log_all_of_it(bus: KafkaBus) -> None:
    heard: list[str] = []

    async def hear(event: TurnControl) -> None:
        heard.append(event.turn_id)
        if event.turn_id == "bad":
            raise ZeroDivisionError

    listener = Listener(bus.kafka, TurnControl, hear)
    stop = asyncio.Event()
    await bus.publish(control("before"))
    running = asyncio.create_task(listener.run(stop))
    await asyncio.wait_for(listener.ready.wait(), 60)
    await bus.publish(control("bad"), control("a"))
    await until(lambda: heard == ["bad", "a"])
    await bus.restart_broker()
    await bus.publish(control("b"), control("c"), control("d"))
    listener.new_epoch()
    await until(lambda: set(heard[2:]) == {"b", "c", "d"}, within_s=60)
    stop.set()
    await running


def control(turn_id: str) -> OutgoingRecord:
    return to_record(TurnControl("t1", turn_id, "cancel"))


async def test_lag_and_work_in_flight_are_shown(bus: KafkaBus, recorder: Recorder) -> None:
    recorder.gates = dict.fromkeys(("a", "b", "c"), asyncio.Event())
    await bus.start(recorder.subscriptions())
    await bus.publish(*map(record, recorder.gates))

    await until(lambda: seen("eventbus_lag", topic=TOPIC, partition="0") == 3)
    await until(lambda: seen("eventbus_in_flight") == 3)
    recorder.gates["a"].set()
    await until(lambda: seen("eventbus_lag", topic=TOPIC, partition="0") == 0)
    await bus.stop()
    assert seen("eventbus_lag", topic=TOPIC, partition="0") is None
