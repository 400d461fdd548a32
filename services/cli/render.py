"""What commands print for people."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from libs.kernel import printable
from services.cli.client import Json
from services.cli.uploads import ENDED, Upload

WIDE = 240  # where nobody looks: into a file or a pipe, rows stay on one line


class PlainConsole(Console):
    """Shows texts as they are: in names, answers and passages, which come from anybody, nothing is
    markup, the name of an emoji or a command to the terminal.
    """

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, highlight=False, soft_wrap=True, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        options |= {"markup": False, "emoji": False}
        return super().render_str(printable(text, keep="\n\t"), **options)


out = PlainConsole(width=None if sys.stdout.isatty() else WIDE)
err = PlainConsole(stderr=True)


def upload_summary(uploads: list[Upload]) -> str:
    """`12 indexed, 1 failed, 3 parsed`."""
    counts = Counter(upload.state for upload in uploads)
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))


@contextmanager
def progress(
    title: str, total: int, *, quiet: bool = False
) -> Iterator[Callable[[int, str], None]]:
    """A live bar; the function takes how many are done and what to call them (empty: the title)."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=err, disable=quiet) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done, summary: bar.update(task, completed=done, description=summary or title)


@contextmanager
def upload_progress(total: int, *, quiet: bool = False) -> Iterator[Callable[[list[Upload]], None]]:
    """A live bar over all uploads; nothing when quiet."""
    with progress("uploading", total, quiet=quiet) as update:

        def changed(uploads: list[Upload]) -> None:
            update(sum(upload.state in ENDED for upload in uploads), upload_summary(uploads))

        yield changed


def print_failures(uploads: list[Upload]) -> None:
    for upload in uploads:
        if upload.state in {"failed", "refused", "cancelled"}:
            detail = upload.document.get("detail") or ""
            text = f"{upload.file}: {upload.state} ({upload.reason}) {detail}".rstrip()
            err.print(text)


def print_sources(citations: list[Json]) -> None:
    if not citations:
        return
    out.print("\nSources", style="bold")
    for citation in citations:
        page = f", page {citation['page']}" if citation.get("page") else ""
        place = f"characters {citation['start']}-{citation['end']}"
        out.print(f"[{citation['n']}] {citation['document_name']}{page}, {place}")
        out.print(f"    “{shortened(citation['quote'])}”", style="dim")


def print_hits(hits: list[Json]) -> None:
    for number, hit in enumerate(hits, start=1):
        scores = ", ".join(
            f"{name} {score:.2f}" for name, score in hit["scores"].items() if score is not None
        )
        page = f", page {hit['page']}" if hit.get("page") else ""
        out.print(f"{number}. {hit['document_name']}{page}  ({scores})", style="bold")
        if hit.get("heading_path"):
            path = shortened(" › ".join(hit["heading_path"]), 300)
            out.print(f"   {path}", style="dim")
        near = hit.get("neighbours") or []
        for each in near:
            if each["position"] < 0:
                out.print(f"   {each['position']:+d} {shortened(each['text'], 300)}", style="dim")
        out.print(f"   {shortened(hit['text'], 300)}")
        for each in near:
            if each["position"] > 0:
                out.print(f"   {each['position']:+d} {shortened(each['text'], 300)}", style="dim")
        if hit.get("duplicate_of"):
            out.print(f"   says the same as {hit['duplicate_of']}", style="dim")
        if hit.get("explanation"):
            print_reasons(hit["explanation"])


def print_reasons(why: Json) -> None:
    """Why one hit stands where it stands."""
    for name, channel in why["channels"].items():
        passed = "passes" if channel["passed"] else "below"
        out.print(
            f"   {name}: rank {channel['rank']}, {channel['raw']:.3f} → {channel['score']:.2f}, "
            f"{passed} the floor {channel['floor']:.2f}, adds {channel['adds']:.2f}",
            style="dim",
        )
    terms = ", ".join(f"{each['term']} {each['weight']:.1f}" for each in why["matched_terms"])
    moved = f"; fused rank {why['fused_rank']}" if why["fused_rank"] != why["rank"] else ""
    out.print(f"   terms: {terms or 'none'}{moved}", style="dim")


def table_of(*columns: str, title: str | None = None) -> Table:
    """A plain table. Ids and names of topics stay whole, to be copied; the last column wraps."""
    table = Table(box=None, pad_edge=False, title=title, title_justify="left")
    for column in columns:
        is_last = column == columns[-1]
        table.add_column(column, overflow="fold", no_wrap=not is_last)
    return table


def document_table(documents: list[Json]) -> Table:
    table = table_of("id", "state", "name", "chunks", "reason")
    for document in documents:
        counts: dict[str, Any] = document.get("counts") or {}
        table.add_row(
            document["id"],
            document["state"],
            document["name"],
            str(counts.get("chunks", "")),
            document.get("reason") or "",
        )
    return table


def print_finding(finding: Json, repair: str | None) -> None:
    """`missing-chunks  vectors  document … generation 2: 3 of 40 chunks missing, as …`."""
    of = finding["document_id"]
    where = f"document {of} ({finding['tenant']})" if of else "no document"
    if finding["generation"] is not None:
        where += f" generation {finding['generation']}"
    out.print(f"{finding['kind']}  {finding['store']}  {where}: {finding['detail']}")
    if repair:
        out.print(f"    → {repair}", style="dim")


def shortened(text: str, length: int = 160) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"
