"""Where a document's files live in the object store. Nothing else builds these keys."""


def document_prefix(tenant: str, document_id: str) -> str:
    """Everything the object store holds of a document starts with this."""
    return f"{tenant}/{document_id}/"


def original_key(tenant: str, document_id: str) -> str:
    """The uploaded file, as it came."""
    return f"{tenant}/{document_id}/original"


def generation_prefix(tenant: str, document_id: str, generation: int) -> str:
    return f"{tenant}/{document_id}/{generation}/"


def parsed_key(tenant: str, document_id: str, generation: int) -> str:
    """The document model of one generation."""
    return f"{tenant}/{document_id}/{generation}/document.json"


def text_key(tenant: str, document_id: str, generation: int) -> str:
    """The plain text that every offset of the generation counts in, in UTF-8."""
    return f"{tenant}/{document_id}/{generation}/text.txt"
