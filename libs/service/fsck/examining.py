"""One document under the lens: what it must have, what it may have, and what is too much."""

import asyncio
from collections.abc import Iterator

from sqlalchemy import RowMapping

from libs.kernel import made_at_us, now_us
from libs.service.fsck.findings import Finding, Kind
from libs.service.fsck.stores import NEW, Holdings, Stores
from libs.storage.sql.document_states import RUNNING, DocumentState

UPLOAD_GRACE_S = 3600.0  # an upload that still streams has an id, maybe its file, and no row


class Examiner:
    """Compares the stores about one document.

    Args:
        grace_s: A document that changed within this is left alone: work is in flight.
        settle_s: The pause before the second look at what seems wrong.
        upload_grace_s: How long an original may wait for its row.
    """

    def __init__(
        self,
        stores: Stores,
        *,
        grace_s: float = 30.0,
        settle_s: float = 2.0,
        upload_grace_s: float = UPLOAD_GRACE_S,
    ) -> None:
        self._stores = stores
        self._grace_us = int(grace_s * 1e6)
        self._settle_s = settle_s
        self._upload_grace_us = int(upload_grace_s * 1e6)

    async def examine(self, tenant: str, document_id: str) -> "Examined":
        """Look, and look again at what seems wrong: only what stays so is found.

        Raises: TransientError when a store is away.
        """
        first = await self._look(tenant, document_id)
        if not first.findings:
            return first
        await asyncio.sleep(self._settle_s)
        second = await self._look(tenant, document_id)
        stayed = [finding for finding in second.findings if finding in first.findings]
        return Examined(second.holdings, stayed, second.in_progress or second.findings != stayed)

    async def _look(self, tenant: str, document_id: str) -> "Examined":
        held = await self._stores.holdings(tenant, document_id)
        if not held.settled or self._is_fresh(held, document_id):
            return Examined(held, [], in_progress=True)
        if held.row is None:
            return Examined(held, list(_of_no_document(held, tenant, document_id)))
        if held.row["state"] == DocumentState.DELETED:
            return Examined(held, [], in_progress=True)  # its deletion is under way
        findings = [*_of_shown(held, held.row), *_of_past(held, held.row)]
        return Examined(held, findings, in_progress=held.row["state"] in RUNNING)

    def _is_fresh(self, held: Holdings, document_id: str) -> bool:
        now = now_us()
        if held.row is not None:
            return bool(held.row["updated_at"] > now - self._grace_us)
        only_uploaded = held.objects == {"original"}
        grace_us = self._upload_grace_us if only_uploaded else self._grace_us
        return made_at_us(document_id) > now - grace_us


class Examined:
    """What was seen of one document."""

    def __init__(
        self, holdings: Holdings, findings: list[Finding], in_progress: bool = False
    ) -> None:
        self.holdings = holdings
        self.findings = findings
        self.in_progress = in_progress


def _of_shown(held: Holdings, row: RowMapping) -> Iterator[Finding]:
    """The generation that search shows must be whole in every store, and nothing but it."""
    of, shown = (row["tenant"], row["id"]), row["active_generation"]
    is_indexed = row["state"] == DocumentState.INDEXED
    if is_indexed and shown != row["generation"]:
        detail = f"indexed as generation {row['generation']}, but search shows {shown or 'none'}"
        yield Finding(Kind.NOT_SHOWN, *of, row["generation"], "sql", detail)
    wanted = {"original"} if shown is None else {"original", f"{shown}/text.txt"}
    wanted |= set() if shown is None else {f"{shown}/document.json"}
    for name in sorted(wanted - held.objects):
        yield Finding(Kind.MISSING_OBJECT, *of, shown, "objects", f"{name} is gone")
    if shown is None:
        return
    for store, indexed in held.indexed.items():
        there = indexed.get(shown, set())
        must_be_there = not store.startswith(NEW) or held.whole_in_new == shown
        if must_be_there and (missing := held.children - there):
            detail = f"{len(missing)} of {len(held.children)} chunks missing, as {min(missing)}"
            yield Finding(Kind.MISSING_CHUNKS, *of, shown, store, detail)
        if extra := there - held.children:
            detail = f"{len(extra)} rows that SQL does not have, as {min(extra)}"
            yield Finding(Kind.EXTRA_CHUNKS, *of, shown, store, detail)
    if is_indexed:
        yield from _of_counts(held, row)


def _of_counts(held: Holdings, row: RowMapping) -> Iterator[Finding]:
    shown, counts = row["active_generation"], row["counts"]
    total = held.generations.get(shown, 0)
    stored = {"chunks": len(held.children), "parents": total - len(held.children)}
    for name, number in stored.items():
        if counts.get(name, number) != number:
            detail = f"the document says {counts[name]} {name}, SQL has {number}"
            yield Finding(Kind.WRONG_COUNT, row["tenant"], row["id"], shown, "sql", detail)


def _of_past(held: Holdings, row: RowMapping) -> Iterator[Finding]:
    """Nothing of a generation that is over. A failed one may be resumed: it keeps its work."""
    of, shown, newest = (row["tenant"], row["id"]), row["active_generation"], row["generation"]
    keeps_work = row["state"] in RUNNING or row["state"] == DocumentState.FAILED
    may_have = {shown, newest} if keeps_work else {shown}
    for store, indexed in held.indexed.items():
        for past in sorted(indexed.keys() - may_have):
            detail = f"{len(indexed[past])} rows of a generation that is over"
            yield Finding(Kind.LEFTOVER_GENERATION, *of, past, store, detail)
    for past in sorted(held.generations.keys() - may_have):
        detail = f"{held.generations[past]} chunks of a generation that is over"
        yield Finding(Kind.LEFTOVER_GENERATION, *of, past, "sql", detail)
    for past in sorted(held.graph.keys() - {shown}):
        detail = f"{held.graph[past]} graph rows of a generation that is over"
        yield Finding(Kind.LEFTOVER_GENERATION, *of, past, "graph", detail)
    stored = {int(name.split("/")[0]) for name in held.objects if name[0].isdecimal()}
    for past in sorted(stored - {shown, newest}):
        detail = "files of a generation that is over"
        yield Finding(Kind.LEFTOVER_GENERATION, *of, past, "objects", detail)


def _of_no_document(held: Holdings, tenant: str, document_id: str) -> Iterator[Finding]:
    kind, of = Kind.LEFTOVER_DOCUMENT, (tenant, document_id, None)
    for store, indexed in held.indexed.items():
        if count := sum(map(len, indexed.values())):
            yield Finding(kind, *of, store, f"{count} rows of a document that does not exist")
    if count := sum(held.generations.values()):
        yield Finding(kind, *of, "sql", f"{count} chunks of a document that does not exist")
    if count := sum(held.graph.values()):
        yield Finding(kind, *of, "graph", f"{count} rows of a document that does not exist")
    if held.objects:
        detail = f"{len(held.objects)} files of a document that does not exist"
        yield Finding(kind, *of, "objects", detail)
