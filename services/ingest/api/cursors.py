"""Where a page of the document list ended, as text that clients hand back."""

import re

from sqlalchemy import RowMapping

from libs.web import invalid

_CURSOR = re.compile(r"([0-9]{1,18})\.([0-9a-f]{1,64})")


def cursor_of(row: RowMapping) -> str:
    return f"{row['created_at']}.{row['id']}"


def position(cursor: str | None) -> tuple[int, str] | None:
    """The (created_at, id) in a cursor. Raises: ProblemError 422."""
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise invalid("bad-cursor", "Pass the `next` of the page before, unchanged.")
    return int(match[1]), match[2]
