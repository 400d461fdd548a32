"""Stops a consumer whose dead letters come in a row."""

import asyncio


class DeadLetterLimit:
    """Counts dead letters since the last message that came to a proper end."""

    def __init__(self, max_consecutive: int) -> None:
        self._max = max_consecutive
        self._run = 0
        self.reached = asyncio.Event()

    def ended_well(self) -> None:
        self._run = 0

    def dead_lettered(self) -> None:
        self._run += 1
        if self._run >= self._max:
            self.reached.set()
