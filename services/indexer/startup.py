"""Before the first event: the indexes exist and find what they are given, in both languages."""

import re

from libs.documents.analysis import VERSION as ANALYSER
from libs.documents.analysis import analyse
from libs.kernel import TransientError, new_id
from libs.models.ports import Embedder
from libs.service.search import PROBE_TENANT
from libs.storage.ports import IndexRow, KeywordIndex, VectorIndex
from libs.storage.sql import Database
from libs.storage.sql.active_index import ActiveIndex, read_or_make

# What is stored, and a question that must find it before all others: in both indexes …
PROBES = {
    "zh": ("差旅费用的报销上限是每天五百元。", "出差报销上限"),
    "en": ("Parcels are delivered within three working days.", "delivery of a parcel"),
}
# … and by its words alone.
WORDS = {
    "mixed term": ("工作站配备RTX-4090显卡。", "rtx4090"),
    "standard": ("产品按 GB/T 19001 检验。", "GB/T19001"),
    "error code": ("The installer ended with ERR_0x80070005.", "0x80070005"),
    "article": ("第十二条　员工应当遵守考勤纪律。", "第十二条"),
}


def wanted_index(embedder: Embedder, version: str = "v1") -> ActiveIndex:
    """The names of a set of indexes: another model is another collection.

    Args:
        version: Keeps sets apart; what a fresh installation starts with is the first.
    """
    model = re.sub(r"\W", "_", embedder.name, flags=re.ASCII)
    vectors = f"chunks_{model}_{embedder.dimension}_{version}"
    return ActiveIndex(embedder.name, vectors, f"chunks_{version}")


async def prepare(
    db: Database, embedder: Embedder, vectors: VectorIndex, keywords: KeywordIndex
) -> ActiveIndex:
    """The active index, made and probed. One that another model made is left as it is.

    Raises: TransientError when a store is away or does not find a probe; try again later.
    """
    await embedder.ready()
    active = await read_or_make(db, wanted_index(embedder), analyser=ANALYSER)
    if active.embedding_model != embedder.name:
        return active
    await vectors.ensure(active.vector_collection)
    await keywords.ensure(active.keyword_index)
    await probe(active, embedder, vectors, keywords)
    return active


async def probe(
    active: ActiveIndex, embedder: Embedder, vectors: VectorIndex, keywords: KeywordIndex
) -> None:
    """A backend that loses a language (an analyser missing, a broken build) must not serve.

    Raises: TransientError: it does not find what it was given.
    """
    passages = [passage for passage, _ in PROBES.values()]
    embedded = await embedder.embed_passages(passages)
    if embedded.shape[1] != embedder.dimension:
        raise TransientError(
            f"{embedder.name} makes vectors of {embedded.shape[1]} dimensions, not of the "
            f"{embedder.dimension} that it is declared with: correct its declaration"
        )
    # Of its own: other indexers that start at the same time must neither help nor disturb.
    tenant = f"{PROBE_TENANT}-{new_id()}"
    rows = [
        IndexRow(name, tenant, "probe", 1, "", vector=vector, terms=analyse(passage))
        for name, passage, vector in zip(PROBES, passages, embedded, strict=True)
    ]
    words = [
        IndexRow(name, tenant, "probe", 1, "", terms=analyse(text))
        for name, (text, _) in WORDS.items()
    ]
    try:
        await vectors.upsert(active.vector_collection, rows)
        await keywords.upsert(active.keyword_index, [*rows, *words])
        await _find_all(tenant, active, embedder, vectors, keywords)
    finally:
        await vectors.delete(active.vector_collection, tenant, "probe")
        await keywords.delete(active.keyword_index, tenant, "probe")


async def _find_all(
    tenant: str,
    active: ActiveIndex,
    embedder: Embedder,
    vectors: VectorIndex,
    keywords: KeywordIndex,
) -> None:
    for name, (_, question) in PROBES.items():
        near = await vectors.search(
            active.vector_collection, tenant, await embedder.embed_query(question), 1
        )
        if [hit.chunk_id for hit in near] != [name]:
            raise TransientError(f"the vector index does not find its {name} probe")
    for name, (text, question) in {**PROBES, **WORDS}.items():
        terms = analyse(text)
        said = await keywords.search(active.keyword_index, tenant, analyse(question), 1)
        known = await keywords.frequencies(active.keyword_index, tenant, terms)
        lost = [term for term in dict.fromkeys(terms) if not known.rows.get(term)]
        if lost or [hit.chunk_id for hit in said] != [name]:
            raise TransientError(
                f"the keyword index does not find its {name} probe ({question!r} in {text!r}; lost "
                f"terms: {', '.join(lost) or 'none'}): it would hide documents, so it is not "
                "served on; its field must keep terms as they are given"
            )
