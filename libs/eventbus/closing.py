"""Closing broker clients, whatever state the broker is in."""

import asyncio
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from libs.kernel import end_tasks


async def close_client(client: AIOKafkaConsumer | AIOKafkaProducer, timeout_s: float) -> None:
    """Stop a client within a bound; a broker that is gone is no reason to fail."""
    if isinstance(client, AIOKafkaConsumer):
        _let_leave(client)
    stopping = asyncio.create_task(client.stop())
    try:
        await asyncio.wait({stopping}, timeout=timeout_s)
    finally:
        await end_tasks(stopping)
    # A consumer with a fetch under way breaks off its own stop, with a CancelledError of that
    # fetch, before it has closed its connections.
    connections = client.client if isinstance(client, AIOKafkaProducer) else client._client
    with suppress(KafkaError, OSError):
        await connections.close()


def _let_leave(client: AIOKafkaConsumer) -> None:
    """Make a group's first member leave, too.

    The client counts generation 0 as "no member yet" and goes without a word, but the embedded
    broker starts with 0: everybody else in the group would wait until the session times out.
    """
    coordinator = client._coordinator
    leave = getattr(coordinator, "_maybe_leave_group", None)
    if leave is None:
        return

    async def leave_from_the_start() -> None:
        if coordinator.generation == 0:
            coordinator.generation = 1
        await leave()

    coordinator._maybe_leave_group = leave_from_the_start
