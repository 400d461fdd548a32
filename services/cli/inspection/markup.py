"""HTML made of parts: every text is escaped, as only `element` makes what is not."""

from html import escape
from typing import Final

from libs.kernel import is_hidden

_VOID: Final = frozenset({"br", "meta"})


class Html(str):
    """Markup that is safe to put into a page. Made by this module alone."""

    __slots__ = ()


Part = Html | str | int | None


def element(
    name: str, *parts: Part, kind: str = "", attributes: dict[str, str] | None = None
) -> Html:
    """An element around its parts.

    Args:
        kind: Its CSS classes.
        attributes: Further ones, by names that come from the code; their values may be any text.
    """
    given = {"class": kind} if kind else {}
    given |= attributes or {}
    said = "".join(f' {key}="{escape(_shown(value))}"' for key, value in given.items())
    opened = f"<{name}{said}>"
    return Html(opened if name in _VOID else f"{opened}{joined(*parts)}</{name}>")


def joined(*parts: Part) -> Html:
    """Parts one after the other; None is nothing."""
    return Html("".join(_safe(part) for part in parts if part is not None))


def style_sheet(css: str) -> Html:
    """A `style` element. Args: css: From the code, never from a document."""
    return Html(f"<style>{css}</style>")


def table(head: tuple[str, ...], rows: list[tuple[Part, ...]], *, kind: str = "") -> Html:
    """A table with one head row; without any head if that is empty."""
    top = element("tr", *(element("th", cell) for cell in head)) if head else None
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element("div", element("table", top, *body, kind=kind), kind="wide")


def _safe(part: Html | str | int) -> str:
    return part if isinstance(part, Html) else escape(_shown(str(part)))


def _shown(text: str) -> str:
    """The text with what nobody could see, or what would turn its direction, by its number."""
    if text.isprintable():
        return text
    return "".join(f"[U+{ord(c):04X}]" if c not in "\n\t" and is_hidden(c) else c for c in text)
