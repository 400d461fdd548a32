"""The events that a document's row gives rise to."""

from sqlalchemy import RowMapping

from libs.contracts import (
    DocumentChunked,
    DocumentDeleted,
    DocumentParsed,
    DocumentUploaded,
    Event,
)
from libs.storage.keys import parsed_key, text_key
from libs.storage.sql.document_states import DocumentState

URGENT = "urgent"


def lane_of(priority: str) -> str:
    """The lane that a document's events travel on; '' is the base topic."""
    return URGENT if priority == URGENT else ""


def uploaded_event(row: RowMapping) -> DocumentUploaded:
    """The event that starts the newest generation."""
    return DocumentUploaded(
        tenant=row["tenant"],
        document_id=row["id"],
        generation=row["generation"],
        name=row["name"],
        media_type=row["media_type"],
        object_key=row["object_key"],
        size_bytes=row["size_bytes"],
        priority=row["priority"],
    )


def pending_event(row: RowMapping) -> Event | None:
    """The event that the document's state waits for; None when nothing is due."""
    of = (row["tenant"], row["id"], row["generation"])
    counts, priority = row["counts"], row["priority"]
    match row["state"]:
        case DocumentState.UPLOADED:
            return uploaded_event(row)
        case DocumentState.PARSED:
            keys = parsed_key(*of), text_key(*of)
            return DocumentParsed(*of, *keys, counts.get("chars", 0), priority)
        case DocumentState.CHUNKED:
            return DocumentChunked(*of, counts.get("parents", 0), counts.get("chunks", 0), priority)
        case DocumentState.DELETED:
            return DocumentDeleted(row["tenant"], row["id"])
    return None
