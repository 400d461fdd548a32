"""Sending records to the broker."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol, Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    InvalidProducerEpoch,
    KafkaError,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    UnknownProducerId,
)

from libs.contracts import OutgoingRecord, Position
from libs.eventbus.closing import close_client
from libs.eventbus.connection import KafkaConnection
from libs.eventbus.late_answers import LateAnswers
from libs.kernel import TransientError, look_at, stable_partition
from libs.observability.metrics import EVENTBUS_PUBLISHED

PROBE_TIMEOUT_S = 5.0
RENEW_GRACE_S = 1.0  # an old producer's last words; what they carried is sent again
# After these an idempotent producer's numbering is void: whatever it sends fails, too.
_BROKEN = (InvalidProducerEpoch, OutOfOrderSequenceNumber, ProducerFenced, UnknownProducerId)


class Publisher(Protocol):
    """Puts records onto topics; a returned position means that the broker has the record."""

    async def send(self, record: OutgoingRecord) -> Position:
        """Raises: TransientError (the record may or may not be in the log)."""
        ...

    async def send_many(self, records: Sequence[OutgoingRecord]) -> list[Position | TransientError]:
        """What became of each record, in order. Records of one key keep their order. Never
        raises for a broker's fault: a record that could not be sent has its error in the list.
        """
        ...


def _partition(key: bytes | None, partitions: Sequence[int], _available: Sequence[int]) -> int:
    return partitions[stable_partition((key or b"").decode(), len(partitions))]


class KafkaPublisher:
    """`Publisher` over one producer, which `renew` replaces when the broker's log is a new one.

    A record that is sent again while its first send has no answer yet is not sent twice
    (`LateAnswers`). A producer whose numbering the broker refuses is replaced before the next send.

    Args:
        timeout_s: Bound on every send, connection and topic look-up included.
    """

    def __init__(self, kafka: KafkaConnection, *, timeout_s: float = 8.0) -> None:
        self._kafka = kafka
        self._timeout_s = timeout_s
        self._producer: AIOKafkaProducer | None = None
        self._gone = asyncio.Event()  # set when the producer is replaced
        self._late = LateAnswers()
        self._broken = False
        self._renewing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Connect. Raises: TransientError when no broker answers."""
        producer = self._kafka.producer(
            request_timeout_ms=int(self._timeout_s * 1000),
            partitioner=_partition,
            max_request_size=8 * 1024 * 1024,
            max_batch_size=256 * 1024,
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                await producer.start()
        except (KafkaError, OSError, TimeoutError) as exc:
            await close_client(producer, self._timeout_s)
            raise TransientError(f"no broker at {self._kafka.bootstrap}: {exc}") from exc
        self._producer, self._gone = producer, asyncio.Event()
        self._late.clear()
        self._broken = False

    async def renew(self) -> None:
        """The broker's log is a new one: start a new producer, give up what the old one holds.

        Raises: TransientError when no broker answers; the old producer stays.
        """
        old, gone = self._producer, self._gone
        await self.start()
        gone.set()
        if old is not None:
            await close_client(old, RENEW_GRACE_S)

    async def close(self) -> None:
        """Send what is buffered, within the time limit, and disconnect."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await close_client(producer, self._timeout_s)

    async def answers(self) -> bool:
        """Whether the broker is there now. What is known of its topics is fresh afterwards, too."""
        if self._producer is None:
            return False
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                return bool(await self._producer.client.force_metadata_update())
        except (KafkaError, OSError, TimeoutError):
            return False

    async def send(self, record: OutgoingRecord) -> Position:
        outcome = (await self.send_many([record]))[0]
        if isinstance(outcome, TransientError):
            raise outcome
        return outcome

    async def send_many(self, records: Sequence[OutgoingRecord]) -> list[Position | TransientError]:
        if self._broken:
            await self._mend()
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        gone = self._gone
        pending: list[asyncio.Future[Any] | TransientError] = []
        for record in records:
            pending.append(await self._enqueue(record, deadline))
        return [
            await self._outcome(record, sent, deadline, gone)
            for record, sent in zip(records, pending, strict=True)
        ]

    async def _enqueue(
        self, record: OutgoingRecord, deadline: float
    ) -> "asyncio.Future[Any] | TransientError":
        if self._producer is None:
            return TransientError("the broker is not connected")
        if earlier := self._late.take(record):
            return earlier
        try:
            async with asyncio.timeout_at(deadline):
                if not await _knows(self._producer, record.topic):
                    return TransientError(f"the broker has no topic {record.topic}")
                sent: asyncio.Future[Any] = await self._producer.send(
                    record.topic,
                    value=record.value,
                    key=record.key.encode(),
                    partition=record.partition,
                    headers=[(name, text.encode()) for name, text in record.headers.items()],
                )
                sent.add_done_callback(look_at)  # who gave up waiting has told
                return sent
        except (KafkaError, OSError, TimeoutError, AssertionError) as exc:
            self._note(exc)
            return _failed(record.topic, exc)

    async def _outcome(
        self,
        record: OutgoingRecord,
        sent: "asyncio.Future[Any] | TransientError",
        deadline: float,
        gone: asyncio.Event,
    ) -> Position | TransientError:
        if isinstance(sent, TransientError):
            return sent
        try:
            async with asyncio.timeout_at(deadline):
                await _first_of(sent, gone)
            if not sent.done():
                return TransientError("the producer was replaced")
            stored = sent.result()
        except TimeoutError as exc:
            if not sent.done():
                self._late.expect(record, sent)
            return _failed(record.topic, exc)
        except (KafkaError, OSError) as exc:
            self._note(exc)
            return _failed(record.topic, exc)
        EVENTBUS_PUBLISHED.labels(stored.topic).inc()
        return Position(stored.topic, stored.partition, stored.offset)

    def _note(self, exc: Exception) -> None:
        # The bare class is what every send gets after the client's own sending task has died.
        self._broken = self._broken or isinstance(exc, _BROKEN) or type(exc) is KafkaError

    async def _mend(self) -> None:
        async with self._renewing:
            if self._broken:
                with suppress(TransientError):  # each send tells in its own words
                    await self.renew()


async def _knows(producer: AIOKafkaProducer, topic: str) -> bool:
    """Whether the topic exists. Asking for it by name would create it, with any partition count."""
    if topic in producer.client.cluster.topics():
        return True
    await producer.client.force_metadata_update()
    return topic in producer.client.cluster.topics()


async def _first_of(sent: "asyncio.Future[Any]", gone: asyncio.Event) -> None:
    if sent.done():
        return
    waiting = asyncio.ensure_future(gone.wait())
    try:
        await asyncio.wait({sent, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


def _failed(target: str, exc: BaseException) -> TransientError:
    error = TransientError(f"not sent to {target}: {exc or type(exc).__name__}")
    error.__cause__ = exc
    return error
