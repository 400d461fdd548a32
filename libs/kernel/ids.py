"""Identifiers: time-ordered random ids, and deterministic ids derived from others."""

import os
import threading
import time
import zlib

_making = threading.Lock()
_last = 0


def new_id() -> str:
    """A 32-digit lower-case hexadecimal id, a UUID version 7: ids made later sort later.

    Within a process that holds for every two; between processes for different milliseconds.

    Source: RFC 9562, sections 5.7 and 6.2 (method 2, steps of one).
    """
    global _last
    stamp = time.time_ns() // 1_000_000
    tail = int.from_bytes(os.urandom(10), "big")
    value = (stamp << 80) | tail
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    with _making:
        _last = value = max(value, _last + 1)
    return f"{value:032x}"


def made_at_us(made_id: str) -> int:
    """When `new_id` made an id, in microseconds since 1970; 0 for ids that others made."""
    try:
        return int(made_id[:12], 16) * 1000 if len(made_id) == 32 else 0
    except ValueError:
        return 0


def chunk_id(document_id: str, generation: int, ordinal: int, *, parent: bool = False) -> str:
    """The id of a chunk: the same text cut again in the same generation overwrites itself."""
    return f"{document_id}.{generation}.{'p' if parent else 'c'}{ordinal}"


def stable_partition(key: str, partitions: int) -> int:
    """`crc32(key) % partitions`, the same in every process and language."""
    return zlib.crc32(key.encode()) % partitions
