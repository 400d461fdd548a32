"""Builds a text and its blocks together, so that offsets are exact by construction."""

from libs.documents.model import Block, BlockKind
from libs.documents.normalise import normalise_text, squeeze


class TooLongError(ValueError):
    """The text grew over the limit of the builder."""


class BlockBuilder:
    """Collects blocks in reading order.

    Args:
        max_chars: `add` raises TooLongError beyond this many characters in all.
    """

    def __init__(self, max_chars: int = 50_000_000) -> None:
        self._parts: list[str] = []
        self._length = 0
        self.max_chars = max_chars
        self.blocks: list[Block] = []
        self.page: int | None = None
        self.page_count = 0

    def add(
        self, kind: BlockKind, text: str, *, level: int | None = None, verbatim: bool = False
    ) -> None:
        """Append a block; blank text adds nothing. `verbatim` keeps inner blanks and indents."""
        text = normalise_text(text).strip("\n").rstrip() if verbatim else squeeze(text)
        if not text.strip():
            return
        if self._length:
            close = kind is BlockKind.LIST_ITEM and self.blocks[-1].kind is BlockKind.LIST_ITEM
            self._append("\n" if close else "\n\n")
        start = self._length
        self._append(text)
        self.blocks.append(Block(kind, start, self._length, self.page, level))

    def page_break(self) -> None:
        """The next block begins a new page."""
        if self.page is not None:
            at = self._length
            self.blocks.append(Block(BlockKind.PAGE_BREAK, at, at, self.page))
        self.page = (self.page or 0) + 1
        self.page_count = max(self.page_count, self.page)

    def page_ends(self) -> None:
        """What follows is on no page."""
        self.page = None

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def _append(self, text: str) -> None:
        self._length += len(text)
        if self._length > self.max_chars:
            raise TooLongError
        self._parts.append(text)
