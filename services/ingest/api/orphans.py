"""Objects that no document refers to: what crashes and overtaken generations left behind."""

from collections import defaultdict
from collections.abc import Sequence

import structlog
from sqlalchemy import RowMapping

from libs.kernel import made_at_us
from libs.storage.keys import document_prefix, generation_prefix
from libs.storage.ports import ObjectStore
from libs.storage.sql import Database, pages
from libs.storage.sql.uploads import close_before

log = structlog.get_logger(__name__)

_BATCH = 200
Owner = tuple[str, str]  # tenant and document id


async def sweep(db: Database, objects: ObjectStore, *, before_us: int) -> int:
    """Remove orphans from before a time; returns how many objects were removed.

    An orphan belongs to a document id that is older and has no row, or to a generation that is
    neither the newest nor the shown one of a document that was not touched since. What an upload
    or a stage may still be writing is younger than that; an older upload is refused from now on.
    Tombstones are the indexer's to clear.
    """
    removed = 0
    async with db.work() as sql:
        await close_before(sql, before_us)
    for tenant, owned in (await _by_tenant(objects)).items():
        for at in range(0, len(owned), _BATCH):
            batch = dict(owned[at : at + _BATCH])
            async with db.reading() as sql:
                rows = await pages.documents_by_id(sql, tenant, batch)
            for document_id, keys in batch.items():
                for prefix in _orphans((tenant, document_id), keys, rows, before_us):
                    removed += await objects.delete_prefix(prefix)
    if removed:
        log.info("orphans_removed", objects=removed)
    return removed


async def _by_tenant(objects: ObjectStore) -> dict[str, list[tuple[str, list[str]]]]:
    """Tenant -> (document id, the rest of each of its keys)."""
    found: dict[Owner, list[str]] = defaultdict(list)
    for key in await objects.keys(""):
        tenant, _, rest = key.partition("/")
        document_id, _, name = rest.partition("/")
        if name:
            found[tenant, document_id].append(name)
    tenants: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
    for (tenant, document_id), names in found.items():
        tenants[tenant].append((document_id, names))
    return tenants


def _orphans(
    owner: Owner, names: Sequence[str], rows: dict[str, RowMapping], before_us: int
) -> list[str]:
    """The prefixes of a document's keys that nothing refers to any more."""
    row = rows.get(owner[1])
    if row is None:
        made_at = made_at_us(owner[1])  # 0: no document's id
        return [document_prefix(*owner)] if 0 < made_at < before_us else []
    if row["updated_at"] >= before_us:
        return []
    stored = {int(name.split("/")[0]) for name in names if name.split("/")[0].isdecimal()}
    kept = {row["generation"], row["active_generation"]}
    return [generation_prefix(*owner, generation) for generation in sorted(stored - kept)]
