"""Milvus filter expressions. Values are quoted here and nowhere else."""

import json
from collections.abc import Sequence


def tenant_filter(tenant: str, *, domains: Sequence[str] = ()) -> str:
    """Rows of one tenant, optionally only of some knowledge domains."""
    expression = f"tenant == {_quoted(tenant)}"
    if domains:
        expression += f" and domain in [{', '.join(_quoted(domain) for domain in domains)}]"
    return expression


def document_filter(tenant: str, document_id: str, *, generations: range | None = None) -> str:
    """Rows of one document, optionally only of some generations."""
    expression = f"{tenant_filter(tenant)} and document_id == {_quoted(document_id)}"
    if generations is not None:
        first, end = int(generations.start), int(generations.stop)
        expression += f" and generation >= {first} and generation < {end}"
    return expression


def _quoted(value: str) -> str:
    """A string literal; JSON's escapes of quotes and backslashes are Milvus' too."""
    return json.dumps(value, ensure_ascii=False)
