"""A document's text in a report: bounded excerpts, tables as tables."""

from typing import Any, Final

from libs.documents.model import BlockKind
from libs.documents.tables import CELL_SEPARATOR
from services.cli.inspection.markup import Html, Part, element, joined

MAX_CHARS: Final = 3_000  # of one text
MAX_TABLE_ROWS: Final = 60
MAX_CELLS: Final = 30  # of a row
_MAX_CELL_CHARS: Final = 300


def passage(text: str, kind: str, *, has_head: bool = False) -> Html:
    """A block's or a chunk's text, as what it is.

    Args:
        kind: Of block.
        has_head: Whether a table's first row is its head.
    """
    if kind == BlockKind.TABLE:
        return _grid(text, has_head=has_head)
    name = "pre" if kind == BlockKind.CODE else "p"
    return joined(element(name, text[:MAX_CHARS], kind="text"), _rest(text, MAX_CHARS))


def excerpt(text: str, length: int) -> str:
    flat = " ".join(text[: 4 * length].split())
    return flat if len(text) <= 4 * length and len(flat) <= length else flat[: length - 1] + "…"


def number(value: int) -> str:
    """`12 345`, with spaces that do not break."""
    return f"{value:,}".replace(",", "\N{NO-BREAK SPACE}")


def said(value: Any) -> str:
    """A value of JSON, for people."""
    match value:
        case None:
            return "—"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.3f}".rstrip("0").rstrip(".")
        case int():
            return number(value)
        case list():
            return ", ".join(map(said, value)) or "none"
        case dict():
            return ", ".join(f"{name} {said(each)}" for name, each in value.items()) or "none"
        case _:
            return str(value)


def _grid(text: str, *, has_head: bool) -> Html:
    lines = text.strip("\n").split("\n", MAX_TABLE_ROWS)
    shown, rest = lines[:MAX_TABLE_ROWS], lines[MAX_TABLE_ROWS:]
    rows = [_row(line, "th" if has_head and not at else "td") for at, line in enumerate(shown)]
    left = sum(1 + each.count("\n") for each in rest)
    more = element("p", f"… {number(left)} more rows", kind="more") if left else None
    return joined(element("div", element("table", *rows, kind="grid"), kind="wide"), more)


def _row(line: str, name: str) -> Html:
    cells: list[Part] = list(line.split(CELL_SEPARATOR, MAX_CELLS))
    if len(cells) > MAX_CELLS:
        cells[MAX_CELLS] = "…"
    return element("tr", *(element(name, excerpt(str(cell), _MAX_CELL_CHARS)) for cell in cells))


def _rest(text: str, shown: int) -> Html | None:
    left = len(text) - shown
    return element("p", f"… {number(left)} more characters", kind="more") if left > 0 else None
