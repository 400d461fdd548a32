"""Milvus filter expressions. Values are quoted here and nowhere else."""

from collections.abc import Iterable, Sequence

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def tenant_filter(
    tenant: str, *, domains: Sequence[str] = (), documents: Sequence[str] = ()
) -> str:
    """Rows of one tenant, optionally only of some knowledge domains and documents."""
    expression = f"tenant == {_quoted(tenant)}"
    for field, values in (("domain", domains), ("document_id", documents)):
        if values:
            expression += f" and {field} in [{', '.join(map(_quoted, values))}]"
    return expression


def document_filter(tenant: str, document_id: str, *, generations: range | None = None) -> str:
    """Rows of one document, optionally only of some generations."""
    expression = f"{tenant_filter(tenant)} and document_id == {_quoted(document_id)}"
    if generations is not None:
        first, end = int(generations.start), int(generations.stop)
        expression += f" and generation >= {first} and generation < {end}"
    return expression


def rows_filter(tenant: str, document_id: str | None) -> str:
    """Rows of one document, or of all the tenant's documents."""
    return tenant_filter(tenant) if document_id is None else document_filter(tenant, document_id)


def ids_filter(ids: Iterable[str]) -> str:
    """Rows of these primary keys."""
    return f"id in [{', '.join(map(_quoted, ids))}]"


def _quoted(value: str) -> str:
    """A string literal. Milvus Lite knows no other escapes: every other character stays as it is,
    NUL and escapes of terminals too; a full Milvus does as well.
    """
    return f'"{value.translate(_ESCAPES)}"'
