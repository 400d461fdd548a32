"""The tantivy schema and the queries on it. Every query holds the tenant."""

from collections.abc import Sequence
from typing import Any, Final

import tantivy
from tantivy import Occur, Query

from libs.storage.ports import IndexRow


def build_schema() -> Any:
    """Ids and terms are indexed as they come: analysis is ours."""
    builder = tantivy.SchemaBuilder()
    for name, stored in (("row", False), ("tenant", False), ("domain", False)):
        builder.add_text_field(name, stored=stored, tokenizer_name="raw", index_option="basic")
    for name in ("chunk", "document"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("generation", stored=True, indexed=True)
    builder.add_text_field("terms", tokenizer_name="raw", index_option="freq")
    return builder.build()


SCHEMA: Final = build_schema()


def to_document(row: IndexRow) -> Any:
    return tantivy.Document.from_dict(
        {
            "row": row_key(row.tenant, row.chunk_id),
            "tenant": row.tenant,
            "domain": row.domain,
            "chunk": row.chunk_id,
            "document": row.document_id,
            "generation": row.generation,
            "terms": list(row.terms),
        },
        SCHEMA,
    )


def row_key(tenant: str, chunk_id: str) -> str:
    """Two tenants' equal chunk ids must not overwrite each other."""
    return f"{tenant}\x00{chunk_id}"


def ranked(
    tenant: str, terms: Sequence[str], domains: Sequence[str], documents: Sequence[str] = ()
) -> Any:
    """Rows of the tenant (domains, documents) that hold any of the terms, scored by BM25 alone."""
    wanted = Query.boolean_query([(Occur.Should, _term("terms", term, "freq")) for term in terms])
    filters = [_unscored(_term("tenant", tenant))]
    for field, values in (("domain", domains), ("document", documents)):
        if values:
            filters.append(_unscored(Query.term_set_query(SCHEMA, field, list(values))))
    return Query.boolean_query([(Occur.Must, query) for query in (wanted, *filters)])


def rows_of(tenant: str, document_id: str | None = None, generations: range | None = None) -> Any:
    parts = [(Occur.Must, _term("tenant", tenant))]
    if document_id is not None:
        parts.append((Occur.Must, _term("document", document_id)))
    if generations is not None:
        parts.append((Occur.Must, _between(generations)))
    return Query.boolean_query(parts)


def unranked(tenant: str, document_id: str | None = None) -> Any:
    """The same rows, all with one score: their order is the index's own, and stays."""
    return _unscored(rows_of(tenant, document_id))


def rows_with(tenant: str, term: str) -> Any:
    return Query.boolean_query(
        [(Occur.Must, _term("tenant", tenant)), (Occur.Must, _term("terms", term, "freq"))]
    )


def _term(field: str, value: str | int, index_option: str = "basic") -> Any:
    return Query.term_query(SCHEMA, field, value, index_option)


def _between(generations: range) -> Any:
    return Query.range_query(
        SCHEMA,
        "generation",
        tantivy.FieldType.Unsigned,
        lower_bound=max(0, generations.start),
        upper_bound=max(0, generations.stop),
        include_upper=False,
    )


def _unscored(query: Any) -> Any:
    return Query.const_score_query(query, 0.0)
