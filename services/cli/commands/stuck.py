"""`stuck` and `resume`: what has not moved and why, and one command that makes it go on."""

from collections.abc import Callable
from typing import Annotated

import typer

from services.cli import render
from services.cli.client import Client, Json
from services.cli.errors import CliError, ExitCode
from services.cli.running import AsJson, print_json, run

LIMIT = 1_000


def stuck(
    older_than: Annotated[str, typer.Option(help="As 60s, 5m or 2h.")] = "60s",
    resume_: Annotated[
        bool, typer.Option("--resume", help="Resume the failed documents that it can help.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is not final and has not moved, each with why; and failed documents.

    Exits with 1 when there is anything.
    """
    seconds = _seconds(older_than)

    async def work(client: Client) -> ExitCode:
        found = await client.get("/v1/admin/stuck", older_than_s=seconds, limit=LIMIT)
        if as_json:
            print_json(found)
        else:
            _print(found, older_than)
        if resume_:
            ids = await _failed_ids(client, found, _is_resumable)
            return await _resume(client, ids, as_json=as_json)
        return ExitCode.FAILED if found["unfinished"] or found["failed"] else ExitCode.OK

    run(work)


def resume(
    documents: Annotated[list[str] | None, typer.Argument(help="Ids of documents.")] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Every failed document that it can help.")
    ] = False,
    reason: Annotated[
        str | None, typer.Option(help="With --failed: those with this reason, whatever it is.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let failed documents go on at the stage that failed. Exits with 1 when one is refused."""
    if bool(documents) == failed:
        render.err.print("sluice: name documents, or use --failed")
        raise typer.Exit(ExitCode.USAGE)

    async def work(client: Client) -> ExitCode:
        ids = documents or []
        if failed:
            found = await client.get("/v1/admin/stuck", limit=LIMIT)
            ids = await _failed_ids(
                client,
                found,
                _is_resumable if reason is None else lambda row: f"({reason})" in row["words"],
            )
        return await _resume(client, ids, as_json=as_json)

    run(work)


def _is_resumable(row: Json) -> bool:
    return bool(row["resumable"])


async def _failed_ids(client: Client, found: Json, wanted: Callable[[Json], bool]) -> list[str]:
    """The failed documents of this page and all that follow.

    Asked for before any is resumed: one that fails again at once would come up again and again.
    """
    ids = [row["id"] for row in found["failed"] if wanted(row)]
    while after := found["next_failed"]:
        found = await client.get("/v1/admin/stuck", limit=LIMIT, failed_after=after)
        ids += [row["id"] for row in found["failed"] if wanted(row)]
    return ids


async def _resume(client: Client, ids: list[str], *, as_json: bool) -> ExitCode:
    refused = 0
    for document_id in ids:
        try:
            document = await client.post(f"/v1/documents/{document_id}/resume", {})
            done = {"id": document_id, "state": document["state"]}
            line = f"{document_id}  goes on from {document['state']}"
        except CliError as exc:
            if exc.code is not ExitCode.FAILED:
                raise
            refused += 1
            done = {"id": document_id, "refused": str(exc)}
            line = f"{document_id}  refused: {exc}"
        if as_json:
            print_json(done)
        else:
            render.out.print(line)
    if not ids and not as_json:
        render.out.print("nothing to resume")
    return ExitCode.FAILED if refused else ExitCode.OK


def _print(found: Json, older_than: str) -> None:
    for title, rows, more in (
        (f"not moved for {older_than}", found["unfinished"], found["more"]),
        ("failed (* can be resumed)", found["failed"], found["next_failed"]),
    ):
        if not rows:
            continue
        table = render.table_of("id", "kind", "state", "for", "name", "why", title=title)
        for row in rows:
            mark = " *" if row["resumable"] else ""
            name, since = render.shortened(row["name"], 30), _spoken(row["since_s"])
            table.add_row(row["id"], row["kind"], row["state"] + mark, since, name, row["words"])
        render.out.print(table)
        if more:
            render.out.print(f"… and more: these {len(rows)} have waited longest")
    if not found["unfinished"] and not found["failed"]:
        render.out.print("nothing is stuck")


def _spoken(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _seconds(text: str) -> float:
    """Raises: typer.BadParameter."""
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        seconds = float(number) * units[unit]
    except ValueError:
        raise typer.BadParameter("a time is written as 60s, 5m or 2h") from None
    if not 0 <= seconds < 1e9:
        raise typer.BadParameter("a time is written as 60s, 5m or 2h")
    return seconds
