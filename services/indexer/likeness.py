"""What a generation's text is like, from the chunks that it has."""

import asyncio

from libs.documents.likeness import Likeness, likeness_of
from libs.storage.sql import chunks
from services.indexer.deps import Deps


async def likeness_in(
    deps: Deps, tenant: str, document_id: str, generation: int
) -> Likeness | None:
    """Parents are the whole text in order, whatever the plan that cut it."""
    async with deps.db.reading() as sql:
        parents = await chunks.parents(sql, tenant, document_id, generation)
    return await asyncio.to_thread(likeness_of, [parent.text for parent in parents])
