"""What a process still waits for, by name."""

import asyncio
from collections.abc import Callable


class Health:
    """Every part of a process reports its own problem here; no problem at all means ready."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._problems: dict[str, str] = {}

    def report(self, source: str, problem: str | None) -> None:
        """`source` lacks `problem` (a short name that people see), or nothing any more: None."""
        if self._problems.get(source) == problem:
            return
        if problem is None:
            self._problems.pop(source, None)
        else:
            self._problems[source] = problem
        self.changed.set()

    def reporter(self, source: str) -> Callable[[str | None], None]:
        """`report` for one source."""
        return lambda problem: self.report(source, problem)

    @property
    def missing(self) -> list[str]:
        """Names of what is missing, sorted."""
        return sorted(set(self._problems.values()))

    @property
    def ready(self) -> bool:
        return not self._problems

    async def names(self) -> list[str]:
        """`missing`, for the health routes."""
        return self.missing
