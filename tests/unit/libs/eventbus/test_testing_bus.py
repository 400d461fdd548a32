"""The in-memory bus gives handler tests the whole delivery path."""

from libs.contracts import DocumentParsed, DocumentUploaded, OutgoingRecord
from libs.eventbus import Failure, GatePolicy, Policies, Subscriptions
from libs.eventbus.testing import InMemoryBus
from libs.kernel import PermanentError, TransientError
from libs.storage.sql import Database

UPLOADED = DocumentUploaded("t1", "d1", 1, "a.txt", "text/plain", "t1/d1/original", 3)
PARSED = DocumentParsed("t1", "d1", 1, "k", "k", 3)


async def test_what_a_handler_emits_is_published(db: Database) -> None:
    async def handle(event: DocumentUploaded) -> None:
        async with db.work() as sql:
            await sql.emit(PARSED)

    bus = InMemoryBus(db, Subscriptions().on(DocumentUploaded, handle))
    await bus.deliver(UPLOADED)
    await bus.redeliver()
    assert bus.published == [PARSED, PARSED]


async def test_a_transient_error_is_retried_when_its_time_has_come(db: Database) -> None:
    tries: list[DocumentUploaded] = []

    async def handle(event: DocumentUploaded) -> None:
        tries.append(event)
        if len(tries) < 3:
            raise TransientError("busy")

    bus = InMemoryBus(db, Subscriptions().on(DocumentUploaded, handle))
    await bus.deliver(UPLOADED)
    assert len(tries) == 1
    assert await bus.run_due() == 1
    assert await bus.run_due() == 1
    assert await bus.run_due() == 0
    assert tries == [UPLOADED] * 3
    assert bus.dead_letters == []


async def test_a_message_that_fails_alone_is_not_tried_in_haste(db: Database) -> None:
    tries: list[DocumentUploaded] = []

    async def handle(event: DocumentUploaded) -> None:
        tries.append(event)
        raise TransientError("busy")

    policies = Policies(gate=GatePolicy(max_failed_in_a_row=3))
    bus = InMemoryBus(db, Subscriptions().on(DocumentUploaded, handle), policies=policies)
    await bus.deliver(UPLOADED)
    for _ in range(30):
        await bus.run_due()
    assert len(tries) == 31
    assert await bus.run_due(within_s=10) == 0
    assert await bus.run_due(within_s=25) == 1
    assert bus.dead_letters == []


async def test_a_permanent_error_calls_the_failed_hook_at_once(db: Database) -> None:
    failures: list[Failure] = []

    async def handle(event: DocumentUploaded) -> None:
        raise PermanentError("encrypted", "it has a password")

    async def failed(event: DocumentUploaded, failure: Failure) -> None:
        failures.append(failure)

    bus = InMemoryBus(db, Subscriptions().on(DocumentUploaded, handle, failed=failed))
    await bus.deliver(UPLOADED)
    assert failures == [Failure("encrypted", "it has a password", 1, permanent=True)]
    assert (bus.dead_letters, bus.retries) == ([], [])


async def test_without_a_hook_a_permanent_error_is_dead_lettered(db: Database) -> None:
    async def handle(event: DocumentUploaded) -> None:
        raise PermanentError("encrypted")

    bus = InMemoryBus(db, Subscriptions().on(DocumentUploaded, handle))
    await bus.deliver(UPLOADED)
    assert bus.dead_letters == [(UPLOADED, "encrypted")]


async def test_poison_is_dead_lettered_and_the_partition_moves_on(db: Database) -> None:
    seen: list[DocumentUploaded] = []

    async def handle(event: DocumentUploaded) -> None:
        seen.append(event)

    bus = InMemoryBus(db, Subscriptions().on(DocumentUploaded, handle))
    bus.publish(OutgoingRecord("documents.uploaded.v1", "d1", b"not avro"))
    await bus.deliver(UPLOADED)
    assert seen == [UPLOADED]
    assert bus.dead_letters == [(b"not avro", "undecodable")]
