"""`reindex`: a new set of search indexes, built beside the live one."""

import asyncio
from typing import Annotated

import typer

from services.cli import render
from services.cli.client import Client, Json
from services.cli.errors import AwayError, ExitCode
from services.cli.running import AsJson, print_json, run

PATH = "/v1/admin/reindex"
POLL_S = 1.0
_AWAY_S = 60.0  # a gateway that starts anew is waited for


def reindex(
    rechunk: Annotated[
        bool, typer.Option("--rechunk", help="Cut every document anew, too; none is parsed again.")
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Only say how far it is.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="End the one under way.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow it until the new index is in use.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Build the search indexes anew from the stored chunks; search goes on meanwhile.

    Uploads and deletions go to both sets. When the new one is whole, it replaces the old one in
    one step. Exits with 1 when it is refused, or, with --wait, when it was cancelled.
    """
    if (status and (cancel or rechunk or wait)) or (cancel and (rechunk or wait)):
        render.err.print("sluice: --status and --cancel stand alone")
        raise typer.Exit(ExitCode.USAGE)

    async def work(client: Client) -> ExitCode:
        if status:
            found = await client.get(PATH)
        elif cancel:
            found = await client.delete(PATH)
        else:
            found = await client.post(PATH, {"rechunk": rechunk})
            if wait:
                found = await _followed(client, found, quiet=as_json)
        if as_json:
            print_json(found)
        else:
            render.out.print(_said(found))
        failed = wait and found["state"] in {"cancelling", "cancelled"}
        return ExitCode.FAILED if failed else ExitCode.OK

    run(work)


async def _followed(client: Client, found: Json, *, quiet: bool) -> Json:
    """The state once it is not being built any more."""
    patience_s = _AWAY_S
    with render.progress("indexing anew", found["total"] or 0, quiet=quiet) as update:
        while found["state"] == "building":
            update(found["done"] or 0, found["problem"] or "")
            await asyncio.sleep(POLL_S)
            try:
                found = await client.get(PATH)
                patience_s = _AWAY_S
            except AwayError:
                patience_s -= POLL_S
                if patience_s < 0:
                    raise
    return found


def _said(found: Json) -> str:
    lines = [_standing(found)]
    if found["problem"]:
        lines.append(f"held up: {found['problem']}")
    lines += [f"needed: {why}" for why in found["needed"]]
    return "\n".join(lines)


def _standing(found: Json) -> str:
    match found["state"]:
        case "none":
            return "no re-index yet"
        case "building":
            far = f"{found['done']} of {found['total']} documents"
            return f"building a new index: {far}; `sluice reindex --status` says how far it is"
        case "switched":
            return f"the new index is in use since {found['switched_at']}; the old one goes soon"
        case "done":
            return f"the index in use was built anew until {found['switched_at']}"
        case "cancelling":
            return "cancelled: the unfinished index is being removed"
    return f"the last re-index was cancelled at {found['ended_at']}; the index is the one before"
