"""Repairs by ordinary means only, so that they are safe while the platform runs.

A leftover goes by the event that would have removed it; a document that is not whole is parsed
anew from its original, and search keeps showing what it shows until the new generation is whole.
"""

from libs.contracts import DocumentChunked, DocumentDeleted
from libs.kernel import made_at_us
from libs.service.fsck.examining import Examined
from libs.service.fsck.findings import Finding, Kind
from libs.storage.keys import generation_prefix
from libs.storage.ports import ObjectStore
from libs.storage.sql import Database, UnitOfWork, documents
from libs.storage.sql.document_states import RUNNING, DocumentState
from libs.storage.sql.uploads import close_before

NO_ORIGINAL = "cannot be repaired: the original is gone; delete the document and upload it again"
_CHANGED = "left alone: it was changed meanwhile; look again"


class Repairs:
    """Asks for the repair of one document at a time. Repeating a repair is harmless."""

    def __init__(self, db: Database, objects: ObjectStore) -> None:
        self._db = db
        self._objects = objects

    async def repair(self, seen: Examined) -> str:
        """Returns what was set going, or why nothing was. Raises: TransientError."""
        if seen.findings[0].kind is Kind.LEFTOVER_INDEX:
            return "the indexer removes it when it starts, and every hour"
        of = (seen.findings[0].tenant, seen.findings[0].document_id)
        past = [f for f in seen.findings if f.kind is Kind.LEFTOVER_GENERATION]
        if seen.holdings.row is None:
            return await self._delete(*of)
        done = [await self._drop(finding) for finding in past]
        if len(past) < len(seen.findings):
            done.append(await self._parse_anew(seen, *of))
        return "; ".join(dict.fromkeys(done))

    async def _delete(self, tenant: str, document_id: str) -> str:
        async with self._db.work() as sql:
            await close_before(sql, made_at_us(document_id) + 1)
            if await documents.find(sql, tenant, document_id) is not None:
                return _CHANGED
            await sql.emit(DocumentDeleted(tenant, document_id))
        return "its deletion was announced again: the indexer drops what is left"

    async def _drop(self, finding: Finding) -> str:
        of, past = (finding.tenant, finding.document_id), finding.generation or 0
        async with self._db.work() as sql:
            if not await _is_over(sql, *of, past):
                return _CHANGED
            if finding.store != "objects":
                # A chunk set that nobody waits for any more is taken back by whoever is told of it.
                await sql.emit(DocumentChunked(*of, past, 0, 0, "normal"))
                return f"the indexer was asked to take generation {past} back"
        await self._objects.delete_prefix(generation_prefix(*of, past))  # nobody writes it again
        return f"the files of generation {past} were removed"

    async def _parse_anew(self, seen: Examined, tenant: str, document_id: str) -> str:
        row = seen.holdings.row
        assert row is not None  # noqa: S101 - the caller looked
        if "original" not in seen.holdings.objects:
            return NO_ORIGINAL
        async with self._db.work() as sql:
            now = await documents.find(sql, tenant, document_id, lock=True)
            if now != row:
                return _CHANGED
            if row["state"] in RUNNING:
                return "a new generation is in work: it replaces this one"
            started = await documents.start_generation(sql, tenant, document_id, why="repair")
        return f"it is parsed anew, as generation {started['generation']}"


async def _is_over(sql: UnitOfWork, tenant: str, document_id: str, generation: int) -> bool:
    found = await documents.find(sql, tenant, document_id)
    if found is None or generation == found["active_generation"]:
        return False
    return bool(
        generation < found["generation"]
        or (generation == found["generation"] and found["state"] == DocumentState.CANCELLED)
    )
