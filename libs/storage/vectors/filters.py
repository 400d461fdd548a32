"""Milvus filter expressions. Values are quoted here and nowhere else."""

import json
from collections.abc import Sequence


def tenant_filter(tenant: str, *, domains: Sequence[str] = ()) -> str:
    """Rows of one tenant, optionally only of some knowledge domains."""
    expression = f"tenant == {_quoted(tenant)}"
    if domains:
        expression += f" and domain in [{', '.join(_quoted(domain) for domain in domains)}]"
    return expression


def document_filter(tenant: str, document_id: str, *, keep_generation: int | None = None) -> str:
    """Rows of one document, optionally all but one generation."""
    expression = f"{tenant_filter(tenant)} and document_id == {_quoted(document_id)}"
    if keep_generation is not None:
        expression += f" and generation != {int(keep_generation)}"
    return expression


def _quoted(value: str) -> str:
    """A string literal; JSON's escapes of quotes and backslashes are Milvus' too."""
    return json.dumps(value, ensure_ascii=False)
