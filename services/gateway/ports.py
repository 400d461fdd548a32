"""What the gateway asks of others."""

from typing import Protocol

from libs.retrieval import Query, Result


class Search(Protocol):
    """Finds passages for `POST /v1/search`."""

    async def find(self, query: Query) -> Result:
        """At most `query.limit` hits of its tenant, best first. Raises: TransientError."""
        ...
