"""Where a document's files live in the object store. Nothing else builds these keys.

Every function raises PermanentError (`bad-id`) for a tenant or an id that is not one part of a key:
with a slash in it, it would name what is another document's.
"""

from libs.kernel import PermanentError


def document_prefix(tenant: str, document_id: str) -> str:
    """Everything the object store holds of a document starts with this."""
    for part in (tenant, document_id):
        if part in {"", ".", ".."} or "/" in part:
            raise PermanentError("bad-id", f"{part!r} is no tenant and no id of a document.")
    return f"{tenant}/{document_id}/"


def original_key(tenant: str, document_id: str) -> str:
    """The uploaded file, as it came."""
    return f"{document_prefix(tenant, document_id)}original"


def generation_prefix(tenant: str, document_id: str, generation: int) -> str:
    return f"{document_prefix(tenant, document_id)}{generation}/"


def parsed_key(tenant: str, document_id: str, generation: int) -> str:
    """The document model of one generation."""
    return f"{generation_prefix(tenant, document_id, generation)}document.json"


def text_key(tenant: str, document_id: str, generation: int) -> str:
    """The plain text that every offset of the generation counts in, in UTF-8."""
    return f"{generation_prefix(tenant, document_id, generation)}text.txt"
