"""What a member says about offsets that it no longer owns must not count."""

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import IllegalGenerationError

from libs.kernel import look_at


class Fence:
    """Lets a started group client commit only in the generation that the offsets are of.

    By itself it commits in whatever generation it is in when the request goes out: in a later one,
    in which somebody else has come further; or, while it has to join anew, in none at all, which
    the embedded broker takes. So a member that was frozen past its session would, when it wakes up,
    turn back the offsets of those who took over.
    """

    def __init__(self, client: AIOKafkaConsumer) -> None:
        self._coordinator: Any = client._coordinator
        self._send = self._coordinator._do_commit_offsets
        self._generation = -1
        self._coordinator._do_commit_offsets = self._send_if_current

    def expect_current(self) -> None:
        """What is committed next was finished in the generation of now."""
        self._generation = self._coordinator.generation

    def _send_if_current(self, assignment: Any, offsets: Any) -> "asyncio.Future[None]":
        sending = asyncio.ensure_future(self._unless_stale(assignment, offsets))
        # The client shields it, so it may fail after whoever committed has stopped waiting.
        sending.add_done_callback(look_at)
        return sending

    async def _unless_stale(self, assignment: Any, offsets: Any) -> None:
        now = self._coordinator.generation
        if now < 0 or now != self._generation:
            raise IllegalGenerationError(self._coordinator.group_id)
        await self._send(assignment, offsets)
