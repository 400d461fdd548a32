"""What the gateway asks of others."""

from collections.abc import Sequence
from typing import Protocol

from libs.retrieval.types import Hit


class Search(Protocol):
    """Finds passages for `POST /v1/search`."""

    async def search(
        self, tenant: str, query: str, *, limit: int, domains: Sequence[str] = ()
    ) -> Sequence[Hit]:
        """At most `limit` hits of this tenant, best first. Raises: TransientError."""
        ...
