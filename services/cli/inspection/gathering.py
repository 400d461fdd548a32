"""What a report is made from, read over HTTP; bounded whatever the document's size."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from services.cli.client import Client, Json
from services.cli.errors import CliError, ExitCode

HITS: Final = 20  # a search
_TEXT_CHARS: Final = 4_000_000
_PAGE: Final = 500  # the API gives no more at once


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's two searches, each as `POST /v1/search` answers."""

    question: str
    within: Json  # only the document
    library: Json


@dataclass(frozen=True, slots=True)
class Parsed:
    """The beginning of what is shown of a document: its blocks, its text, its chunks."""

    outline: Json  # counts of the whole, title, language, warnings
    blocks: list[Json]
    text: str
    chunks: list[Json]  # children; those cut from the blocks
    parents: list[Json]


@dataclass(frozen=True, slots=True)
class Inspected:
    """`missing` says why nothing is parsed, where that is so."""

    document: Json
    plan: Json
    parsed: Parsed | None
    missing: str = ""
    asked: list[Asked] = field(default_factory=list)


async def gather(
    client: Client, document_id: str, questions: Sequence[str], max_rows: int
) -> Inspected:
    """Raises: CliError."""
    path = f"/v1/documents/{document_id}"
    document = await client.get(path)
    plan = await client.get(f"{path}/plan")
    parsed, missing = None, ""
    try:
        parsed = await _parsed(client, path, max_rows)
    except CliError as exc:
        if exc.code is not ExitCode.FAILED:
            raise
        missing = str(exc)
    asked = [await _ask(client, document_id, question) for question in questions]
    return Inspected(document, plan, parsed, missing, asked)


async def _parsed(client: Client, path: str, max_rows: int) -> Parsed:
    outline, blocks = await _pages(client, f"{path}/blocks", max_rows)
    end = blocks[-1]["end"] if blocks else 0
    cut, chunks = await _pages(client, f"{path}/chunks", max_rows, end=end)
    if cut["next"] is not None and len(chunks) == max_rows:  # the rest of the blocks has no room
        end = min(end, chunks[-1]["end"])
        blocks = [{**b, "end": min(b["end"], end)} for b in blocks if b["start"] < end]
    _, parents = await _pages(client, f"{path}/chunks", max_rows, end=end, parents=True)
    if outline["generation"] != cut["generation"]:
        raise CliError("the document changed while it was read: try again", ExitCode.UNREACHABLE)
    text = await client.text(f"{path}/text", min(end, _TEXT_CHARS))
    return Parsed(outline, blocks, text, chunks, parents)


async def _pages(
    client: Client, path: str, limit: int, *, end: int | None = None, **parameters: bool
) -> tuple[Json, list[Json]]:
    """The last page without its items, and up to `limit` items, those that start before `end`."""
    items: list[Json] = []
    after = -1
    while True:
        wanted = min(_PAGE, limit - len(items))
        page = await client.get(path, after=after, limit=wanted, **parameters)
        found = page.pop("items")
        items += [item for item in found if end is None or item["start"] < end]
        done = page["next"] is None or len(items) >= limit
        if done or (end is not None and found[-1]["start"] >= end):
            return page, items
        after = page["next"]


async def _ask(client: Client, document_id: str, question: str) -> Asked:
    body = {"query": question, "top_k": HITS, "explain": True}
    within = await client.post("/v1/search", {**body, "filters": {"document_ids": [document_id]}})
    return Asked(question, within, await client.post("/v1/search", body))
