"""`ask` and `search`."""

from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from libs.kernel import printable
from services.cli import asking, render
from services.cli.client import Client, Json
from services.cli.errors import CliError, ExitCode
from services.cli.explaining import print_explanation
from services.cli.patience import Patience
from services.cli.running import AsJson, print_json, run

TIME: Final = "DATE|TIME"


def ask(
    question: Annotated[str, typer.Argument(help="Your question, in any language.")],
    conversation: Annotated[str | None, typer.Option(help="Go on with this conversation.")] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a question; the answer streams, its numbered sources follow."""

    async def work(client: Client) -> ExitCode:
        patience = Patience()
        number = conversation or await asking.start_conversation(client, patience)
        final: Json = {}
        last = ""
        async for kind, data in asking.ask(client, number, _text(question), patience):
            last, final = kind, data
            if as_json:
                continue
            if kind == "delta":
                print(printable(data["text"], keep="\n\t"), end="", flush=True)
            elif kind == "restarted":
                print("\n[the answer starts again]\n")
            elif kind == "status" and data.get("status") == "waiting":
                lacks = ", ".join(map(str, data.get("for") or ())) or "somebody to work on it"
                render.err.print(f"(waiting for {lacks})", style="dim", markup=False)
        return _finish(last, final, number, as_json=as_json)

    run(work)


def _finish(kind: str, final: Json, conversation: str, *, as_json: bool) -> ExitCode:
    if as_json:
        print_json({"conversation_id": conversation, **final})
    elif kind == "done":
        print()
        render.print_sources(final.get("citations", []))
        render.err.print(f"(conversation {conversation})", style="dim")
    if kind == "error":
        why = final.get("error") or {}
        raise CliError(str(why.get("detail") or why.get("reason") or "it failed"), ExitCode.FAILED)
    if final.get("state") == "cancelled":
        raise CliError("the turn was cancelled", ExitCode.FAILED)
    return ExitCode.DECLINED if final.get("declined") else ExitCode.OK


def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    top_k: Annotated[int, typer.Option(min=1, max=100, help="How many hits.")] = 5,
    domain: Annotated[list[str] | None, typer.Option(help="Only these knowledge domains.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only documents with all of these.")] = None,
    document: Annotated[list[str] | None, typer.Option(help="Only these documents (ids).")] = None,
    after: Annotated[str | None, typer.Option(help="Uploaded then or later.", metavar=TIME)] = None,
    before: Annotated[str | None, typer.Option(help="Uploaded before then.", metavar=TIME)] = None,
    neighbours: Annotated[
        int, typer.Option(min=0, max=3, help="Passages before and after each hit to show.")
    ] = 0,
    explain: Annotated[bool, typer.Option(help="Say what the search did, and why.")] = False,
    as_json: AsJson = False,
) -> None:
    """Search the documents and show why each hit stands where it stands."""
    filters = {
        "tags": [_text(each) for each in tag or ()],
        "document_ids": [_text(each) for each in document or ()],
        "created_after": _time(after, "--after"),
        "created_before": _time(before, "--before"),
    }
    body = {
        "query": _text(query),
        "top_k": top_k,
        "domains": [_text(each) for each in domain or ()],
        "filters": filters,
        "neighbours": neighbours,
        "explain": explain,
    }

    async def work(client: Client) -> ExitCode:
        found = await client.post("/v1/search", body)
        if as_json:
            print_json(found)
        else:
            render.print_hits(found["hits"])
            if found.get("explanation"):
                print_explanation(found["explanation"])
        return ExitCode.OK if found["hits"] else ExitCode.FAILED

    run(work)


def _time(argument: str | None, option: str) -> str | None:
    """A date or a time, of this machine's zone unless it names one, as RFC 3339.

    In UTC: old offsets of many zones have seconds, which RFC 3339 has no way to say.
    """
    if argument is None:
        return None
    try:
        return datetime.fromisoformat(argument).astimezone(UTC).isoformat()
    except (ValueError, OverflowError) as exc:
        raise typer.BadParameter(
            "give a date or a time, such as 2026-01-31 or 2026-01-31T08:00:00+08:00",
            param_hint=option,
        ) from exc


def _text(argument: str) -> str:
    """An argument as Unicode: bytes of another encoding cannot be sent."""
    return argument.encode("utf-8", "replace").decode()
