"""What the executor needs from outside."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from libs.retrieval.types import Evidence


class EvidenceSource(Protocol):
    """Finds what an answer may rest on. Raises: TransientError when a backend is away."""

    async def gather(
        self, tenant: str, questions: Sequence[str], *, domains: Sequence[str] = ()
    ) -> Evidence:
        """Evidence for all (sub-)questions, numbered 1, 2, … within one budget."""
        ...


class Leases(Protocol):
    """Keeps two executors off one turn."""

    def hold(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Hold a lease for the block, renewed meanwhile; False when somebody alive has it.

        Waits for a holder that stopped renewing. Raises: TransientError.
        """
        ...
