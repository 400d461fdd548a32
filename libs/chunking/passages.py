"""Long prose as groups of sentences, the grain at which subjects are told apart."""

from collections.abc import Iterator
from dataclasses import dataclass

from libs.chunking.structure import PROSE
from libs.documents.model import Block, ParsedDocument
from libs.documents.sentences import sentence_spans

GROUPS_PER_CHILD = 5


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring sentences of a passage: `text[start:end]`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Passage:
    """Prose without a heading, table or code in it, longer than one child chunk."""

    groups: tuple[Group, ...]


def passages_of(document: ParsedDocument, child_max_chars: int) -> Iterator[Passage]:
    """The document's long passages in order; shorter prose needs no cut. Linear."""
    run: list[Block] = []
    for block in document.blocks:
        if block.kind in PROSE:
            run.append(block)
            continue
        yield from _passage(document.text, run, child_max_chars)
        run = []
    yield from _passage(document.text, run, child_max_chars)


def _passage(text: str, run: list[Block], child_max_chars: int) -> Iterator[Passage]:
    if not run or run[-1].end - run[0].start <= child_max_chars:
        return
    sentences = [
        Group(block.start + start, block.start + end)
        for block in run
        for start, end in sentence_spans(text[block.start : block.end], max_chars=child_max_chars)
    ]
    yield Passage(tuple(_joined(sentences, child_max_chars // GROUPS_PER_CHILD)))


def _joined(sentences: list[Group], enough_chars: int) -> Iterator[Group]:
    """Sentences together until they say enough to be compared."""
    start: int | None = None
    for sentence in sentences:
        start = sentence.start if start is None else start
        if sentence.end - start >= enough_chars:
            yield Group(start, sentence.end)
            start = None
    if start is not None:
        yield Group(start, sentences[-1].end)
