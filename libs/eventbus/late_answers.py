"""What a producer still tries to send after its caller has stopped waiting."""

import asyncio
from typing import Any

from libs.contracts import OutgoingRecord

_KEEP_S = 60.0  # an answer that came late, for whoever sends the record again

_Identity = tuple[str, str, int | None, tuple[tuple[str, str], ...], bytes]


class LateAnswers:
    """Sends without an answer yet, by what they carry.

    An idempotent producer tries a record until the broker has it. Whoever sends the record again
    takes the earlier try from here: the log holds it once, however long the broker was away.
    """

    def __init__(self) -> None:
        self._sends: dict[_Identity, asyncio.Future[Any]] = {}
        self._watched: set[asyncio.Future[Any]] = set()  # in a long outage a record comes often

    def expect(self, record: OutgoingRecord, sent: "asyncio.Future[Any]") -> None:
        """Nobody waits for this send any more."""
        identity, sends = _identity(record), self._sends
        sends[identity] = sent
        if sent in self._watched:
            return
        self._watched.add(sent)

        def answered(_: "asyncio.Future[Any]") -> None:
            self._watched.discard(sent)
            if sent.cancelled() or sent.exception() is not None:
                forget()
            else:
                sent.get_loop().call_later(_KEEP_S, forget)

        def forget() -> None:
            if sends.get(identity) is sent:
                del sends[identity]

        sent.add_done_callback(answered)

    def take(self, record: OutgoingRecord) -> "asyncio.Future[Any] | None":
        """The earlier send of this record, if it did not fail."""
        return self._sends.pop(_identity(record), None) if self._sends else None

    def clear(self) -> None:
        """Their producer is given up."""
        self._sends.clear()


def _identity(record: OutgoingRecord) -> _Identity:
    headers = tuple(sorted(record.headers.items()))
    return record.topic, record.key, record.partition, headers, record.value
