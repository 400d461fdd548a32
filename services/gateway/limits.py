"""How much and how often one API key may ask."""

import time
from collections.abc import Callable

from libs.web import too_large


class RateLimit:
    """A token bucket per key, in this process: each replica counts for itself.

    `per_minute` questions a minute and key, in bursts of at most as many; 0 is no limit.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._full_at: dict[str, float] = {}  # when the key's bucket is full again

    def wait_s(self, key: str) -> float:
        """Take one token: 0.0, or the seconds until one is there (and none was taken)."""
        if self._per_minute <= 0:
            return 0.0
        now, per_token_s = self._clock(), 60.0 / self._per_minute
        full_at = max(self._full_at.get(key, now), now)
        wait_s = full_at + per_token_s - 60.0 - now
        if wait_s > 1e-9:
            return wait_s
        self._full_at[key] = full_at + per_token_s
        if len(self._full_at) > 10_000:
            self._full_at = {k: at for k, at in self._full_at.items() if at > now}
        return 0.0


def check_length(text: str, max_chars: int) -> None:
    """Raises: ProblemError 413 for a question over `max_chars` characters (0: no limit)."""
    if 0 < max_chars < len(text):
        raise too_large(
            f"The question has {len(text)} characters, more than {max_chars}. Shorten it, or "
            "upload the long text as a document and ask about that."
        )
