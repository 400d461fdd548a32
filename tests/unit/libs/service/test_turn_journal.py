"""The fan-out: in order, never in the way."""

import asyncio
from collections.abc import Sequence

from libs.contracts import OutgoingRecord, Position, TurnReply, decode, to_record
from libs.kernel import TransientError
from libs.service.turn_journal import ReplyFanOut


def record(seq: int) -> OutgoingRecord:
    return to_record(TurnReply("acme", "t1", seq, "delta", "{}"), partition=1)


class FakePublisher:
    """`Publisher` that keeps records; holds them back while `gate` is closed."""

    def __init__(self) -> None:
        self.sent: list[int] = []  # the replies' numbers
        self.gate = asyncio.Event()
        self.down = False

    async def send(self, record: OutgoingRecord) -> Position:
        raise NotImplementedError

    async def send_many(self, records: Sequence[OutgoingRecord]) -> list[Position | TransientError]:
        await self.gate.wait()
        if self.down:
            return [TransientError("no broker") for _ in records]
        replies = [decode(record.value) for record in records]
        self.sent += [reply.seq for reply in replies if isinstance(reply, TurnReply)]
        return [Position(r.topic, 0, i) for i, r in enumerate(records)]


async def test_records_go_out_in_order_and_the_end_waits_for_them() -> None:
    publisher = FakePublisher()
    async with ReplyFanOut(publisher) as fan_out:
        for seq in range(5):
            fan_out.offer([record(seq)])
        publisher.gate.set()
    assert publisher.sent == list(range(5))


async def test_broker_that_hangs_holds_nobody_up_and_memory_is_bounded() -> None:
    publisher = FakePublisher()
    async with ReplyFanOut(publisher, max_waiting=10) as fan_out:
        for seq in range(1_000):
            fan_out.offer([record(seq)])
        await asyncio.sleep(0)
        publisher.gate.set()
    assert len(publisher.sent) <= 11


async def test_lost_records_do_not_stop_later_ones() -> None:
    publisher = FakePublisher()
    publisher.gate.set()
    publisher.down = True
    async with ReplyFanOut(publisher) as fan_out:
        fan_out.offer([record(1)])
        await asyncio.sleep(0.01)
        publisher.down = False
        fan_out.offer([record(2)])
    assert publisher.sent == [2]
