"""Chunking speed beside chonkie, semchunk and LangChain's splitter, and how it grows with length.

Ours does more in its time: it profiles the document, recommends a plan and makes two levels of
chunks with heading paths, pages and exact offsets. The rivals cut the same text into pieces of the
same size, measured in characters as well.
"""

import statistics
import sys
import time
from collections.abc import Callable

from chonkie import RecursiveChunker
from langchain_text_splitters import RecursiveCharacterTextSplitter
from rich.console import Console
from rich.table import Table
from semchunk import chunkerify  # type: ignore[attr-defined]

from libs.chunking.chunking import chunk_document
from libs.chunking.plan import recommend_plan
from libs.chunking.profile import profile_of
from libs.documents.model import ParsedDocument
from tests import parsed
from tests.corpus import make_documents

BASE_CHARS = 250_000
FACTORS = (1, 4, 16)
ROUNDS = 3
CHILD_CHARS = 800
LEAST_PER_SECOND = 1_000_000
MOST_GROWTH = 1.5  # of the time a character takes, from the shortest to the longest text
OURS = "Sluice"


def markdown(chars: int) -> str:
    """English and Chinese sections of a few thousand characters, each second one with a table."""
    table = "| item | amount |\n|---|---|\n" + "".join(f"| 费用 {n} | {n} |\n" for n in range(30))
    parts = [
        f"{made.text}\n\n{table}\n" if number % 4 < 2 else made.text
        for number, made in enumerate(make_documents(40))
    ]
    text = "\n\n".join(parts)
    return (text * (chars // len(text) + 1))[:chars]


def ours(document: ParsedDocument) -> int:
    return len(chunk_document(document, recommend_plan(profile_of(document)), "d", 1).children)


def rivals() -> dict[str, Callable[[ParsedDocument], int]]:
    chonkie = RecursiveChunker(chunk_size=CHILD_CHARS)
    langchain = RecursiveCharacterTextSplitter(chunk_size=CHILD_CHARS, chunk_overlap=0)
    split = chunkerify(len, chunk_size=CHILD_CHARS, memoize=False)
    return {
        "chonkie, RecursiveChunker": lambda document: len(chonkie(document.text)),
        "semchunk, by characters": lambda document: len(split(document.text)),
        "LangChain, recursive": lambda document: len(langchain.split_text(document.text)),
    }


def seconds(cut: Callable[[ParsedDocument], int], document: ParsedDocument) -> float:
    """Processor time, as other processes share the machine."""
    started = time.process_time()
    if not cut(document):
        raise RuntimeError("nothing was cut")
    return time.process_time() - started


def main() -> int:
    cutters = {OURS: ours, **rivals()}
    documents = {factor: parsed.markdown(markdown(BASE_CHARS * factor)) for factor in FACTORS}
    taken: dict[tuple[str, int], list[float]] = {}
    for _ in range(ROUNDS):
        for name, cut in cutters.items():
            for factor, document in documents.items():
                taken.setdefault((name, factor), []).append(seconds(cut, document))
    speed = {
        (name, factor): len(documents[factor].text) / statistics.median(found)
        for (name, factor), found in taken.items()
    }
    heads = [f"{BASE_CHARS * factor / 1e6:g} M characters" for factor in FACTORS]
    table = Table("characters per CPU second", *heads, "Sluice / it")
    last = FACTORS[-1]
    for name in cutters:
        figures = [f"{speed[name, factor] / 1e6:.2f} M" for factor in FACTORS]
        table.add_row(name, *figures, f"{speed[OURS, last] / speed[name, last]:.2f}")
    growth = speed[OURS, FACTORS[0]] / speed[OURS, last]
    slowest = min(speed[OURS, factor] for factor in FACTORS)
    met = slowest >= LEAST_PER_SECOND and growth <= MOST_GROWTH
    targets = Table("target", "measured", "limit")
    targets.add_row("characters per CPU second", f"{slowest:,.0f}", f">= {LEAST_PER_SECOND:,}")
    targets.add_row(f"time per character, {last}x / 1x", f"{growth:.2f}", f"<= {MOST_GROWTH:g}")
    Console(width=120).print(table, targets)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
