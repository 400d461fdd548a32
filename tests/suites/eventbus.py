"""What every event bus does, whatever carries the records: one suite for memory and broker.

A subclass gives the fixture `bus`. Retries come back by themselves, soon.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from typing import Any, Protocol

import pytest
from sqlalchemy import RowMapping, select

from libs.contracts import (
    DocumentDeleted,
    DocumentUploaded,
    Event,
    OutgoingRecord,
    encode,
    to_record,
)
from libs.eventbus import (
    CommitPolicy,
    Failure,
    FlowPolicy,
    GatePolicy,
    Policies,
    RetryPolicy,
    Subscriptions,
)
from libs.kernel import DiskError, PermanentError, TransientError
from libs.storage.sql import Database, UnitOfWork
from libs.storage.sql import dead_letters as dead_letter_rows
from libs.storage.sql.tables import dead_letters

TOPIC = "documents.uploaded.v1"
POLICIES = Policies(
    retry=RetryPolicy(
        max_attempts=3, max_bug_attempts=2, base_delay_s=0.02, uncounted_delay_s=0.02
    ),
    gate=GatePolicy(max_failed_in_a_row=5, first_probe_s=0.02, max_probe_interval_s=0.1),
    commit=CommitPolicy(max_interval_s=0.05),
    flow=FlowPolicy(max_buffered_per_partition=20, max_poll_records=10, drain_timeout_s=5.0),
)
# Records may come one by one: the first is tried again until enough of them have failed to see why.
OFTEN = replace(POLICIES, retry=replace(POLICIES.retry, max_attempts=20, max_bug_attempts=20))


class FlakyDatabase(Database):
    """A database that can be switched off."""

    down = False

    @asynccontextmanager
    async def work(self) -> Any:
        if self.down:
            raise TransientError("database is away")
        async with super().work() as sql:
            yield sql


class Bus(Protocol):
    """A log with one consumer group on it."""

    db: FlakyDatabase
    dead: list[OutgoingRecord]  # what reached the dead-letter topic

    async def start(self, subscriptions: Subscriptions, policies: Policies = POLICIES) -> None:
        """Start the group's consumer."""

    async def stop(self) -> None:
        """End it in good order."""

    async def kill(self) -> None:
        """End it at once: nothing drains, nothing is committed."""

    async def publish(self, *records: OutgoingRecord) -> None: ...

    async def committed(self) -> int:
        """Records of TOPIC's partitions that will not be delivered again."""

    def unfinished(self) -> int:
        """Records that the consumer holds in memory."""

    def problem(self) -> str | None:
        """What the consumer reported last."""


def uploaded(document_id: str, generation: int = 1) -> DocumentUploaded:
    return DocumentUploaded("t1", document_id, generation, "a.txt", "text/plain", "key", 3)


def record(document_id: str, generation: int = 1, *, partition: int = 0) -> OutgoingRecord:
    event = uploaded(document_id, generation)
    return OutgoingRecord(TOPIC, document_id, encode(event), {}, partition)


async def until(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - any state may be waited for
            await asyncio.sleep(0.01)


async def until_committed(bus: Bus, count: int) -> None:
    async with asyncio.timeout(60):
        while await bus.committed() < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def letters(sql: UnitOfWork) -> Sequence[RowMapping]:
    return await sql.rows(select(dead_letters))


class Recorder:
    """Handles documents and remembers; `errors` says what to raise for which document."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int]] = []
        self.done: list[tuple[str, int]] = []
        self.failures: list[tuple[str, Failure]] = []
        self.errors: dict[str, list[BaseException]] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.step_s = 0.0  # how long each takes
        self.fault: Exception | None = None  # of whatever is handled now

    async def handle(self, event: DocumentUploaded) -> None:
        name = (event.document_id, event.generation)
        self.started.append(name)
        if gate := self.gates.get(event.document_id):
            await gate.wait()
        if self.step_s:
            await asyncio.sleep(self.step_s)
        if self.fault:
            raise copy(self.fault)  # raising one again and again makes its traceback grow
        if errors := self.errors.get(event.document_id):
            raise errors.pop(0)
        self.done.append(name)

    async def failed(self, event: DocumentUploaded, failure: Failure) -> None:
        self.failures.append((event.document_id, failure))

    def subscriptions(self) -> Subscriptions:
        return Subscriptions().on(DocumentUploaded, self.handle, failed=self.failed)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


class EventBusSuite:
    async def test_a_key_stays_in_order_while_others_overtake_it(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.gates["a"] = asyncio.Event()
        await bus.start(recorder.subscriptions())
        await bus.publish(*(record(key, n) for n in range(5) for key in "abc"))
        await until(lambda: len(recorder.done) == 10)
        assert recorder.started.count(("a", 0)) == 1
        assert ("a", 1) not in recorder.started
        recorder.gates["a"].set()
        await until(lambda: len(recorder.done) == 15)
        for key in "abc":
            assert [n for k, n in recorder.done if k == key] == list(range(5))

    async def test_commits_never_pass_an_unfinished_message(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.gates["slow"] = asyncio.Event()
        await bus.start(recorder.subscriptions())
        await bus.publish(record("a"), record("b"), record("slow"), record("c"), record("d"))
        await until(lambda: len(recorder.done) == 4)
        await until_committed(bus, 2)
        assert await bus.committed() == 2
        recorder.gates["slow"].set()
        await until_committed(bus, 5)

    async def test_killed_between_effect_and_commit_it_is_delivered_again(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.gates["slow"] = asyncio.Event()
        await bus.start(recorder.subscriptions())
        await bus.publish(record("slow"), record("a"))
        await until(lambda: recorder.done == [("a", 1)] and len(recorder.started) == 2)
        await bus.kill()
        recorder.gates["slow"].set()
        await bus.start(recorder.subscriptions())
        await until_committed(bus, 2)
        assert sorted(recorder.done) == [("a", 1), ("a", 1), ("slow", 1)]

    async def test_stopping_finishes_what_runs_and_leaves_the_rest(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.gates["a"] = asyncio.Event()
        await bus.start(recorder.subscriptions())
        await bus.publish(record("a", 1), record("a", 2))
        await until(lambda: bus.unfinished() == 2 and recorder.started == [("a", 1)])
        asyncio.get_running_loop().call_later(0.2, recorder.gates["a"].set)
        await bus.stop()
        assert ("a", 1) in recorder.done
        assert await bus.committed() == len(recorder.done)
        await bus.start(recorder.subscriptions())
        await until_committed(bus, 2)
        assert recorder.done == [("a", 1), ("a", 2)]

    async def test_a_transient_error_is_retried_and_may_be_overtaken(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors["a"] = [TransientError("busy"), TransientError("busy")]
        await bus.start(recorder.subscriptions())
        await bus.publish(record("a", 1))
        await until(lambda: len(recorder.started) == 1)
        await bus.publish(record("b", 2))
        await until(lambda: len(recorder.done) == 2)
        assert recorder.started.count(("a", 1)) == 3
        assert recorder.failures == []
        await until_committed(bus, 2)

    async def test_a_later_event_overtakes_a_retried_one_of_its_key(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors["a"] = [TransientError("busy")]
        await bus.start(recorder.subscriptions())
        await bus.publish(record("a", 1), record("a", 2))
        await until(lambda: len(recorder.done) == 2)
        assert recorder.done == [("a", 2), ("a", 1)]  # so handlers compare generations

    async def test_used_up_retries_end_in_hook_row_and_topic(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors["a"] = [TransientError("busy")] * 3
        await bus.start(recorder.subscriptions())
        await bus.publish(record("a"))
        await until(lambda: len(bus.dead) == 1)
        assert len(recorder.started) == 3
        ((document_id, failure),) = recorder.failures
        assert (document_id, failure.reason, failure.attempts) == ("a", "retries-exhausted", 3)
        async with bus.db.reading() as sql:
            (row,) = await letters(sql)
        assert (row["topic"], row["partition"], row["offset"]) == (TOPIC, 0, 0)
        assert (row["tenant"], row["reason"], row["attempts"]) == ("t1", "retries-exhausted", 3)
        assert bus.dead[0].headers["dlq_reason"] == "retries-exhausted"
        assert bus.dead[0].topic == f"{TOPIC}.parser.dlq"
        assert bus.dead[0].value == row["value"] == encode(uploaded("a"))

    async def test_a_bug_gets_a_few_tries_and_the_partition_moves_on(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors["a"] = [ZeroDivisionError("oops")] * 2
        await bus.start(recorder.subscriptions())
        await bus.publish(record("a"), record("b"))
        await until(lambda: len(bus.dead) == 1)
        assert recorder.started.count(("a", 1)) == 2
        assert [failure.reason for _, failure in recorder.failures] == ["internal-error"]
        await until_committed(bus, 2)

    async def test_awaiting_a_cancelled_task_is_a_bug_not_a_shutdown(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors["a"] = [asyncio.CancelledError()]
        await bus.start(recorder.subscriptions())
        await bus.publish(record("a"))
        await until(lambda: recorder.done == [("a", 1)])

    async def test_a_permanent_error_fails_the_entity_at_once(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors["a"] = [PermanentError("encrypted", "it has a password")]
        await bus.start(recorder.subscriptions())
        await bus.publish(record("a"))
        await until_committed(bus, 1)
        assert recorder.failures == [
            ("a", Failure("encrypted", "it has a password", 1, permanent=True))
        ]
        assert (len(recorder.started), bus.dead) == (1, [])

    async def test_poison_is_put_aside(self, bus: Bus, recorder: Recorder) -> None:
        await bus.start(recorder.subscriptions())
        poison = OutgoingRecord(TOPIC, "a", b"not avro", {}, 0)
        unknown = OutgoingRecord(TOPIC, "a", b"\0\0\0\xff\xff?", {}, 0)
        await bus.publish(poison, unknown, record("a"))
        await until_committed(bus, 3)
        assert recorder.done == [("a", 1)]
        await until(lambda: len(bus.dead) == 2)
        assert [letter.value for letter in bus.dead] == [poison.value, unknown.value]
        assert {letter.headers["dlq_reason"] for letter in bus.dead} == {
            "undecodable",
            "unknown-schema",
        }

    async def test_poison_that_names_its_tenant_is_that_tenants_letter(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        await bus.start(recorder.subscriptions())
        named = OutgoingRecord(TOPIC, "a", b"not avro", {"ce_tenant": "t1"}, 0)
        await bus.publish(named, OutgoingRecord(TOPIC, "a", b"not avro", {}, 0))
        await until(lambda: len(bus.dead) == 2)
        async with bus.db.reading() as sql:
            assert sorted(row["tenant"] for row in await letters(sql)) == ["", "t1"]

    async def test_a_message_that_is_given_up_again_after_a_redrive_is_a_new_letter(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors["a"] = [ZeroDivisionError("oops")] * 4
        await bus.start(recorder.subscriptions())
        await bus.publish(record("a"))
        await until(lambda: len(bus.dead) == 1)
        async with bus.db.work() as sql:
            (first,) = await dead_letter_rows.listing(sql, "t1")
            await dead_letter_rows.redrive(sql, "t1", first.id)
        await until(lambda: len(bus.dead) == 2)
        async with bus.db.reading() as sql:
            (second,) = await dead_letter_rows.listing(sql, "t1")
        assert second.id != first.id
        assert (second.topic, second.partition, second.offset) == (TOPIC, 0, 0)
        async with bus.db.work() as sql:
            await dead_letter_rows.redrive(sql, "t1", second.id)
        await until(lambda: recorder.done == [("a", 1)])

    async def test_an_event_of_another_type_is_put_aside(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        await bus.start(recorder.subscriptions())
        stray: Event = DocumentDeleted("t1", "a")
        await bus.publish(OutgoingRecord(TOPIC, "a", encode(stray), {}, 0), record("a"))
        await until_committed(bus, 2)
        await until(lambda: len(bus.dead) == 1)
        assert bus.dead[0].headers["dlq_reason"] == "unexpected-event"

    @pytest.mark.parametrize(
        ("error", "problem"),
        [
            (TransientError("busy"), "backend"),
            (TransientError("no space left", missing="disk"), "disk"),
            (ZeroDivisionError("a bad deploy"), "failing-messages"),
        ],
    )
    async def test_while_nothing_works_it_pauses_and_gives_up_nothing(
        self, bus: Bus, recorder: Recorder, error: Exception, problem: str
    ) -> None:
        recorder.fault = error
        await bus.start(recorder.subscriptions(), OFTEN)
        await bus.publish(*(record(f"d{n}") for n in range(12)))
        await until(lambda: bus.problem() == problem)
        tries = len(recorder.started)
        await until(lambda: len(recorder.started) >= tries + 12)  # and tries on, one at a time
        recorder.fault = None
        await until(lambda: len(recorder.done) == 12)
        await until(lambda: bus.problem() is None)
        await bus.publish(record("afterwards"))
        await until(lambda: ("afterwards", 1) in recorder.done)
        assert (recorder.failures, bus.dead) == ([], [])
        await until_committed(bus, 13)

    async def test_a_lonely_message_is_tried_until_its_backend_is_back(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors["a"] = [TransientError("busy")] * 12
        lonely = replace(POLICIES, gate=replace(POLICIES.gate, max_failed_in_a_row=3))
        await bus.start(recorder.subscriptions(), lonely)
        await bus.publish(record("a"))
        await until(lambda: recorder.done == [("a", 1)])
        assert (recorder.failures, bus.dead) == ([], [])

    async def test_what_lacks_room_while_others_have_it_is_never_given_up(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors["large"] = [DiskError("no space left", full=True)] * 12
        await bus.start(recorder.subscriptions())
        await bus.publish(record("large"))
        while ("large", 1) not in recorder.done:
            small = f"small {len(recorder.done)}"
            await bus.publish(record(small))
            await until(lambda small=small: (small, 1) in recorder.done)  # type: ignore[misc]
        assert recorder.started.count(("large", 1)) == 13
        assert (recorder.failures, bus.dead) == ([], [])

    async def test_two_that_lack_room_pause_the_others_soon(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        patient = replace(POLICIES, gate=replace(POLICIES.gate, max_failed_in_a_row=1000))
        recorder.fault = DiskError("no space left", full=True)
        await bus.start(recorder.subscriptions(), patient)
        await bus.publish(record("a"), record("b"))
        await until(lambda: bus.problem() == "disk")
        recorder.fault = None
        await until(lambda: {("a", 1), ("b", 1)} <= set(recorder.done))
        await until(lambda: bus.problem() is None)

    async def test_while_paused_others_are_tried_too_and_the_first_good_one_ends_it(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors = {name: [TransientError("busy")] * 1000 for name in ("bad", "worse")}
        await bus.start(recorder.subscriptions())
        await bus.publish(*map(record, recorder.errors))
        await until(lambda: bus.problem() == "backend")
        await bus.publish(record("good"))
        await until(lambda: ("good", 1) in recorder.done)

    async def test_one_message_that_fails_alone_holds_up_nobody_and_is_not_given_up(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors["bad"] = [TransientError("busy")] * 1000
        paused_for_good = replace(POLICIES.gate, max_failed_in_a_row=3, first_probe_s=1000.0)
        await bus.start(recorder.subscriptions(), replace(POLICIES, gate=paused_for_good))
        await bus.publish(record("bad"))
        await until(lambda: recorder.started.count(("bad", 1)) > 6)
        assert (recorder.failures, bus.dead) == ([], [])
        await bus.publish(*(record(f"d{n}", partition=n) for n in range(6)))
        await until(lambda: len(recorder.done) == 6)
        await until(lambda: bus.problem() is None)

    async def test_while_paused_an_urgent_message_does_not_wait_behind_a_backlog(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors = {f"bulk{n}": [TransientError("busy")] * 1000 for n in range(40)}
        slowly = replace(POLICIES.gate, first_probe_s=0.2, max_probe_interval_s=0.2)
        await bus.start(recorder.subscriptions(), replace(POLICIES, gate=slowly))
        await bus.publish(*map(record, recorder.errors))
        await until(lambda: bus.problem() == "backend")
        tried = len(recorder.started)
        await bus.publish(to_record(uploaded("now"), lane="urgent"))
        await until(lambda: recorder.done == [("now", 1)])
        assert recorder.started.index(("now", 1)) < tried + 20  # while it was on its way, some were

    async def test_a_run_of_poison_does_not_drain_the_topic(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        await bus.start(recorder.subscriptions())
        poison = [OutgoingRecord(TOPIC, f"k{n}", b"poison %d" % n, {}, 0) for n in range(10)]
        await bus.publish(*poison)
        await until(lambda: bus.problem() == "failing-messages")
        await until_committed(bus, 10)  # the others are retries that wait
        assert len(bus.dead) == 4
        await bus.publish(record("good"))
        await until(lambda: len(bus.dead) > 4)
        assert recorder.done == [("good", 1)]

    async def test_stopping_while_paused_leaves_what_waits_for_the_next_start(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.fault = TransientError("busy")
        patient = replace(OFTEN, gate=replace(POLICIES.gate, first_probe_s=1000.0))
        await bus.start(recorder.subscriptions(), patient)
        await bus.publish(*(record(f"d{n}") for n in range(12)))
        await until(lambda: bus.problem() == "backend")
        await bus.stop()
        recorder.fault = None
        await bus.start(recorder.subscriptions())
        await until(lambda: {name for name, _ in recorder.done} >= {f"d{n}" for n in range(12)})
        assert (recorder.failures, bus.dead) == ([], [])

    async def test_work_in_memory_is_bounded(self, bus: Bus, recorder: Recorder) -> None:
        keys = [f"k{n}" for n in range(300)]
        gate = asyncio.Event()
        recorder.gates = dict.fromkeys(keys, gate)
        await bus.start(recorder.subscriptions())
        await bus.publish(*map(record, keys))
        await until(lambda: bus.unfinished() >= 20)
        most = 0
        for _ in range(20):
            most = max(most, bus.unfinished())
            await asyncio.sleep(0.01)
        assert most < 30  # the bound, plus what one poll brought
        gate.set()
        await until_committed(bus, 300)
        assert sorted(recorder.done) == sorted((key, 1) for key in keys)

    async def test_no_retry_is_lost_while_sql_is_away(self, bus: Bus, recorder: Recorder) -> None:
        recorder.errors["a"] = [TransientError("busy")]
        await bus.start(recorder.subscriptions())
        bus.db.down = True
        await bus.publish(record("a"), record("b"))
        await until(lambda: recorder.done == [("b", 1)])
        await until(lambda: bus.problem() == "sql")
        assert await bus.committed() == 0
        bus.db.down = False
        await until(lambda: len(recorder.done) == 2)
        await until_committed(bus, 2)

    async def test_a_failed_hook_is_repeated_until_the_failure_is_recorded(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors["a"] = [PermanentError("encrypted")]
        refusals = [TransientError("busy"), TransientError("busy")]

        async def failed(event: DocumentUploaded, failure: Failure) -> None:
            if refusals:
                raise refusals.pop()
            await recorder.failed(event, failure)

        await bus.start(Subscriptions().on(DocumentUploaded, recorder.handle, failed=failed))
        await bus.publish(record("a"))
        await until_committed(bus, 1)
        assert [failure.reason for _, failure in recorder.failures] == ["encrypted"]

    async def test_a_failed_hook_with_a_bug_leaves_a_dead_letter(
        self, bus: Bus, recorder: Recorder
    ) -> None:
        recorder.errors["a"] = [PermanentError("encrypted")]

        async def failed(event: DocumentUploaded, failure: Failure) -> None:
            raise ZeroDivisionError

        await bus.start(Subscriptions().on(DocumentUploaded, recorder.handle, failed=failed))
        await bus.publish(record("a"))
        await until(lambda: len(bus.dead) == 1)
        assert bus.dead[0].headers["dlq_reason"] == "encrypted"
        async with bus.db.reading() as sql:
            (row,) = await letters(sql)
        assert "ZeroDivisionError" in row["detail"]
        await until_committed(bus, 1)
