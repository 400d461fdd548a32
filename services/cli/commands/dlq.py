"""`dlq`: messages that were given up."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer
from rich.table import Table

from services.cli import render
from services.cli.client import Client, Json
from services.cli.errors import CliError, ExitCode
from services.cli.running import AsJson, print_json, run

app = typer.Typer(help="Messages that were given up: list, show, redrive, purge.")

Group = Annotated[str | None, typer.Option(help="Only of this consumer group.")]
Reason = Annotated[str | None, typer.Option(help="Only those given up for this reason.")]
Letters = Annotated[list[str] | None, typer.Argument(help="Ids of letters.")]
All = Annotated[bool, typer.Option("--all", help="Every letter that the filters match.")]


@app.command("list")
def list_letters(
    group: Group = None,
    reason: Reason = None,
    handled: Annotated[bool, typer.Option(help="Also those that were sent again.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 50,
    as_json: AsJson = False,
) -> None:
    """List the newest letters that nobody has handled. Exits with 1 when there are any."""

    async def work(client: Client) -> ExitCode:
        wanted: dict[str, Any] = {"group": group, "reason": reason, "handled": handled}
        found = await client.get("/v1/admin/dlq", limit=limit, **wanted)
        if as_json:
            for letter in found["items"]:
                print_json(letter)
        elif found["items"]:
            render.out.print(_table(found["items"]))
            if found["next"]:
                render.out.print("… and more")
        else:
            render.out.print("no dead letters")
        waiting = any(letter["redriven_at"] is None for letter in found["items"])
        return ExitCode.FAILED if waiting else ExitCode.OK

    run(work)


@app.command()
def show(
    letter: Annotated[str, typer.Argument(help="A letter's id.")], as_json: AsJson = False
) -> None:
    """Show one letter as JSON, with the event it holds."""

    async def work(client: Client) -> ExitCode:
        found = await client.get(f"/v1/admin/dlq/{letter}")
        print_json(found, indent=None if as_json else 2)
        return ExitCode.OK

    run(work)


@app.command()
def redrive(
    letters: Letters = None,
    group: Group = None,
    reason: Reason = None,
    every: All = False,
    as_json: AsJson = False,
) -> None:
    """Let the work of letters go on. What has ended or moved on is refused, with a reason.

    Exits with 1 when any letter was refused.
    """

    async def redrive_one(client: Client, letter: str) -> Json:
        return await client.post(f"/v1/admin/dlq/{letter}/redrive", {})

    async def work(client: Client) -> ExitCode:
        if letters:
            return _report(await _each(client, letters, redrive_one), as_json=as_json)
        return await _all(client, "redrive", _filter(group, reason), as_json=as_json)

    _check_choice(letters, group, reason, every=every)
    run(work)


@app.command()
def purge(
    letters: Letters = None,
    group: Group = None,
    reason: Reason = None,
    every: All = False,
    as_json: AsJson = False,
) -> None:
    """Throw letters away for good."""

    async def purge_one(client: Client, letter: str) -> Json:
        await client.delete(f"/v1/admin/dlq/{letter}")
        return {"id": letter, "how": "purged"}

    async def work(client: Client) -> ExitCode:
        if letters:
            return _report(await _each(client, letters, purge_one), as_json=as_json)
        return await _all(client, "purge", _filter(group, reason), as_json=as_json)

    _check_choice(letters, group, reason, every=every)
    run(work)


def _check_choice(
    letters: list[str] | None, group: str | None, reason: str | None, *, every: bool
) -> None:
    filtered = group is not None or reason is not None or every
    if bool(letters) == filtered:
        render.err.print("sluice: name letters, or filter with --group, --reason or --all")
        raise typer.Exit(ExitCode.USAGE)


async def _each(
    client: Client, letters: list[str], act: Callable[[Client, str], Awaitable[Json]]
) -> Json:
    """What became of each letter. Raises: CliError about the platform, not about one letter."""
    result: Json = {"done": [], "refused": []}
    for letter in letters:
        try:
            result["done"].append(await act(client, letter))
        except CliError as exc:
            if exc.code is not ExitCode.FAILED:
                raise
            result["refused"].append({"id": letter, "detail": str(exc)})
    return result


async def _all(client: Client, act: str, wanted: Json, *, as_json: bool) -> ExitCode:
    """Every letter that matches, page by page; each page is told of as it is done."""
    worst, result = ExitCode.OK, await client.post(f"/v1/admin/dlq/{act}", wanted)
    while True:
        worst = max(worst, _report(result, as_json=as_json))
        if not result["next"]:
            return worst
        result = await client.post(f"/v1/admin/dlq/{act}", {**wanted, "cursor": result["next"]})


def _filter(group: str | None, reason: str | None) -> Json:
    return {k: v for k, v in (("group", group), ("reason", reason)) if v is not None}


def _report(result: Json, *, as_json: bool) -> ExitCode:
    if as_json:
        print_json(result)
    else:
        for done in result["done"]:
            render.out.print(f"{done['id']}  {done['how']}")
        for refused in result["refused"]:
            render.err.print(f"{refused['id']}  refused: {refused['detail']}")
        if not result["done"] and not result["refused"]:
            render.out.print("no such dead letters")
    return ExitCode.FAILED if result["refused"] else ExitCode.OK


def _table(letters: list[Json]) -> Table:
    table = render.table_of("id", "when", "group", "topic", "tries", "reason", "detail")
    for letter in letters:
        detail = render.shortened(letter["detail"] or "(names no tenant: withheld)", 80)
        table.add_row(
            letter["id"],
            letter["created_at"][:19],
            letter["group"],
            letter["topic"],
            str(letter["attempts"]),
            letter["reason"] + (" (sent again)" if letter["redriven_at"] else ""),
            detail,
        )
    return table
