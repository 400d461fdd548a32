"""Time as the platform stores it: UTC, as microseconds since the epoch."""

import time
from datetime import UTC, datetime


def now_us() -> int:
    """Wall-clock time in microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1_000


def isoformat(at_us: int) -> str:
    """RFC 3339 text, in UTC, of a time in microseconds."""
    return datetime.fromtimestamp(at_us / 1e6, tz=UTC).isoformat().replace("+00:00", "Z")
