"""Where the next page of an administrator's list begins: a time and an id."""

from libs.web.problems import invalid


def cursor_of(at_us: int, id_: str) -> str:
    return f"{at_us}-{id_}"


def position_of(text: str | None) -> tuple[int, str] | None:
    """The time and id of a cursor; None: from the start. Raises: ProblemError."""
    if text is None:
        return None
    at, _, id_ = text.partition("-")
    if not (at.isascii() and at.isdecimal() and len(at) < 18 and id_):
        raise invalid("bad-cursor", "The cursor is none that a page gave: start without one.")
    return int(at), id_
