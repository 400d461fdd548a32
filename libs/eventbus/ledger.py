"""Retries and dead letters as SQL rows: the record that survives an in-memory broker."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from libs.contracts import OutgoingRecord
from libs.contracts.topology import dead_letter_topic, retry_topic
from libs.eventbus.message import (
    ATTEMPT,
    ORIGIN,
    RETRY_ERROR,
    Record,
    key_text,
    origin_of,
    tenant_of,
)
from libs.eventbus.message import text_headers as headers_of
from libs.eventbus.subscriptions import Failure
from libs.kernel import now_us
from libs.storage.sql import Database, dead_letters

MAX_KEY_CHARS = 191
MAX_ERROR_CHARS = 300
MAX_REASON_CHARS = 64


@dataclass(frozen=True, slots=True)
class Ledger:
    """Writes what becomes of a group's messages that did not succeed."""

    db: Database
    group_id: str
    base_topics: dict[str, str]  # every topic read -> the topic it is a lane or retry of
    clock_us: Callable[[], int] = now_us

    async def retry(self, record: Record, attempt: int, delay_s: float, error: str) -> None:
        """Deliver the message again, as this attempt, after `delay_s` seconds, because of an error.

        Raises: PermanentError: it is too large to be sent again.
        """
        headers = headers_of(record) | {
            ATTEMPT: str(attempt),
            ORIGIN: "/".join(map(str, origin_of(record))),
            RETRY_ERROR: error[:MAX_ERROR_CHARS],
        }
        topic = retry_topic(self.base_topics[record.topic], self.group_id)
        again = OutgoingRecord(topic, _key(record), record.value or b"", headers)
        async with self.db.work() as sql:
            await sql.emit_record(again, not_before=self.clock_us() + int(delay_s * 1e6))

    async def dead_letter(self, record: Record, failure: Failure, tenant: str = "") -> None:
        """Record the message as given up; writing it twice leaves one row and one record.

        Args:
            tenant: Of the event, where it could be decoded.
        """
        row = self._row(record, tenant or tenant_of(record), failure)
        async with self.db.work() as sql:
            await dead_letters.store(sql, row, self._dead_record(record, failure))

    def _row(self, record: Record, tenant: str, failure: Failure) -> dict[str, Any]:
        origin = origin_of(record)
        return {
            "id": _letter_id(self.group_id, record),
            "tenant": tenant,
            "topic": self.base_topics[record.topic],
            "group_id": self.group_id,
            "partition": origin[1],
            "offset": origin[2],
            "key": _key(record),
            "value": record.value or b"",
            "headers": headers_of(record),
            "reason": failure.reason[:MAX_REASON_CHARS],
            "detail": failure.detail,
            "attempts": failure.attempts,
            "created_at": self.clock_us(),
        }

    def _dead_record(self, record: Record, failure: Failure) -> OutgoingRecord:
        topic, partition, offset = origin_of(record)
        headers = headers_of(record) | {
            "dlq_reason": failure.reason,
            "dlq_topic": topic,
            "dlq_partition": str(partition),
            "dlq_offset": str(offset),
            "dlq_attempts": str(failure.attempts),
        }
        target = dead_letter_topic(self.base_topics[record.topic], self.group_id)
        return OutgoingRecord(target, _key(record), record.value or b"", headers)


def _key(record: Record) -> str:
    return key_text(record)[:MAX_KEY_CHARS]


def _letter_id(group_id: str, record: Record) -> str:
    # The same delivery gives the same id; the time tells apart two logs with equal offsets.
    place = f"{group_id}|{record.topic}|{record.partition}|{record.offset}|{record.timestamp}|"
    return hashlib.sha256(place.encode() + (record.value or b"")).hexdigest()[:32]
