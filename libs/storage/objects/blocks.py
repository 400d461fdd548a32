"""Objects as they are streamed: block by block."""

from collections.abc import AsyncIterator

BLOCK_BYTES = 256 * 1024  # as they are read


async def blocks(*parts: bytes) -> AsyncIterator[bytes]:
    """A stream of what is in memory."""
    for part in parts:
        yield part
