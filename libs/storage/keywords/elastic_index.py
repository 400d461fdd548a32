"""An index in Elasticsearch: its shape, its rows, and the queries on it. Every query holds the
tenant.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from libs.storage.ports import IndexEntry, IndexHit, IndexRow

Body = dict[str, Any]

_LONGEST_TOKEN: Final = 255  # characters; the whitespace tokenizer cuts longer ones
FIELDS: Final = ["chunk", "document", "generation"]

SETTINGS: Final[Body] = {
    # What `refresh=wait_for` waits for at most; the default of 1 s would hold up every document.
    "refresh_interval": "200ms",
    "auto_expand_replicas": "0-1",
    "max_result_window": 16_384,  # as many hits as a full Milvus gives; by default 10 000
    "translog.durability": "request",  # on disk before it is acknowledged, whatever templates say
    "similarity": {"default": {"type": "BM25", "k1": 1.2, "b": 0.75}},  # as tantivy has them
}
_ID: Final[Body] = {"type": "keyword"}
MAPPINGS: Final[Body] = {
    "dynamic": "strict",
    "properties": {
        "tenant": _ID,
        "domain": _ID,
        "document": _ID,
        "chunk": _ID,
        "generation": {"type": "long"},
        # Frequencies without positions: no phrase is ever asked for.
        "terms": {"type": "text", "analyzer": "whitespace", "index_options": "freqs"},
    },
}


def row_id(tenant: str, chunk_id: str) -> str:
    """Two tenants' equal chunk ids stay apart; any characters, in the 512 bytes an id may have."""
    return hashlib.sha256(f"{tenant}\x00{chunk_id}".encode()).hexdigest()


def to_source(row: IndexRow) -> Body:
    return {
        "tenant": row.tenant,
        "domain": row.domain,
        "document": row.document_id,
        "chunk": row.chunk_id,
        "generation": row.generation,
        "terms": " ".join(map(to_token, row.terms)),
    }


def to_token(term: str) -> str:
    """The one token that stands for a term: whatever could part it is escaped. Injective."""
    token = "".join(_escaped(term)) or "%"
    if len(token) <= _LONGEST_TOKEN:
        return token
    return f"%{hashlib.sha256(term.encode()).hexdigest()}"


def _escaped(term: str) -> Iterator[str]:
    for character in term:
        if character == "%" or character.isspace() or not character.isprintable():
            yield f"%{ord(character):x};"
        else:
            yield character


def ranked(
    tenant: str, terms: Sequence[str], domains: Sequence[str], documents: Sequence[str]
) -> Body:
    """Rows of the tenant (domains, documents) that hold any of the terms, scored by BM25 alone."""
    filters = [_is("tenant", tenant)]
    for field, values in (("domain", domains), ("document", documents)):
        if values:
            filters.append({"terms": {field: list(values)}})
    wanted = [_is("terms", to_token(term)) for term in terms]
    return {"bool": {"should": wanted, "minimum_should_match": 1, "filter": filters}}


def rows_of(tenant: str, document_id: str | None = None, generations: range | None = None) -> Body:
    filters = [_is("tenant", tenant)]
    if document_id is not None:
        filters.append(_is("document", document_id))
    if generations is not None:
        bounds = {"gte": generations.start, "lt": generations.stop}
        filters.append({"range": {"generation": bounds}})
    return {"bool": {"filter": filters}}


def rows_with(terms: Sequence[str]) -> Body:
    """An aggregation: in how many rows each term is, in the order of the terms."""
    return {"filters": {"filters": [_is("terms", to_token(term)) for term in terms]}}


def to_entry(found: Mapping[str, Any]) -> IndexEntry:
    fields = found["fields"]
    return IndexEntry(fields["chunk"][0], fields["document"][0], int(fields["generation"][0]))


def to_hit(found: Mapping[str, Any]) -> IndexHit:
    entry = to_entry(found)
    return IndexHit(entry.chunk_id, entry.document_id, entry.generation, float(found["_score"]))


def _is(field: str, value: str) -> Body:
    return {"term": {field: {"value": value}}}
