"""The `sluice` command."""

import asyncio
import io
import json
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from services.cli import render
from services.cli.client import Client, Json
from services.cli.errors import CliError, ExitCode
from services.cli.settings import CliSettings
from services.cli.uploads import FINAL_STATES, Upload, collect, upload_all

app = typer.Typer(
    help="Sluice: documents in, traceable answers out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def _run(work: Callable[[Client], Coroutine[Any, Any, ExitCode]]) -> None:
    async def main() -> ExitCode:
        async with Client(_settings()) as client:
            return await work(client)

    # File names and answers hold characters that the terminal may not know.
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors="replace")
    try:
        code = asyncio.run(main())
    except CliError as exc:
        render.err.print(f"sluice: {exc}", markup=False, style="red")
        code = exc.code
    raise typer.Exit(int(code))


def _settings() -> CliSettings:
    """Raises: CliError for a setting that cannot be read."""
    try:
        return CliSettings()
    except ValidationError as exc:
        wrong = "; ".join(f"setting {e['loc'][0]}: {e['msg']}" for e in exc.errors())
        raise CliError(wrong, ExitCode.USAGE) from None


def _text(argument: str) -> str:
    """An argument as Unicode: bytes of another encoding cannot be sent."""
    return argument.encode("utf-8", "replace").decode()


@app.command()
def up() -> None:
    """Start the whole product on this machine; Ctrl-C stops it."""
    os.execv(sys.executable, [sys.executable, "-m", "services.local"])  # noqa: S606


@app.command()
def upload(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders.")],
    domain: Annotated[str | None, typer.Option(help="Knowledge domain of the documents.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tag; may be repeated.")] = None,
    urgent: Annotated[bool, typer.Option(help="Use the lane that never waits.")] = False,
    wait: Annotated[bool, typer.Option(help="Follow every document to its end.")] = True,
    as_json: AsJson = False,
) -> None:
    """Upload files and folders and follow them until they can be searched."""

    async def work(client: Client) -> ExitCode:
        files = collect(paths)
        if not files:
            raise CliError("no files there", ExitCode.USAGE)
        fields: dict[str, str | list[str]] = {"priority": "urgent" if urgent else "normal"}
        if domain:
            fields["domain"] = domain
        if tag:
            fields["tags"] = ",".join(tag)
        with _progress(len(files), quiet=as_json) as changed:
            uploads = await upload_all(client, files, fields, wait=wait, changed=changed)
        if as_json:
            for one in uploads:
                print(json.dumps(one.report(), ensure_ascii=False))
        else:
            render.out.print(render.upload_summary(uploads), markup=False)
            render.print_failures(uploads)
        bad = any(one.state in {"failed", "refused", "cancelled"} for one in uploads)
        return ExitCode.FAILED if bad else ExitCode.OK

    _run(work)


@contextmanager
def _progress(total: int, *, quiet: bool) -> Iterator[Callable[[list[Upload]], None]]:
    """A live bar over all uploads; nothing when quiet."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=render.err, disable=quiet) as bar:
        task = bar.add_task("uploading", total=total)

        def changed(uploads: list[Upload]) -> None:
            finished = sum(one.state in FINAL_STATES or bool(one.error) for one in uploads)
            summary = render.upload_summary(uploads)
            bar.update(task, completed=finished, description=summary)

        yield changed


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="Your question, in any language.")],
    conversation: Annotated[str | None, typer.Option(help="Go on with this conversation.")] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a question; the answer streams, its numbered sources follow."""

    async def work(client: Client) -> ExitCode:
        number = conversation or (await client.post("/v1/conversations", {}))["id"]
        final: Json = {}
        last = ""
        async for kind, data in client.stream(
            f"/v1/conversations/{number}/turns", {"text": _text(question)}
        ):
            last, final = kind, data
            if as_json:
                continue
            if kind == "delta":
                print(data["text"], end="", flush=True)
            elif kind == "restarted":
                print("\n[the answer starts again]\n")
        if last not in {"done", "error"}:
            raise CliError("the stream ended before the answer did", ExitCode.UNREACHABLE)
        return _finish(last, final, number, as_json=as_json)

    _run(work)


def _finish(kind: str, final: Json, conversation: str, *, as_json: bool) -> ExitCode:
    if as_json:
        print(json.dumps({"conversation_id": conversation, **final}, ensure_ascii=False))
    elif kind == "done":
        print()
        render.print_sources(final.get("citations", []))
        render.err.print(f"(conversation {conversation})", markup=False, style="dim")
    if kind == "error":
        why = final.get("error") or {}
        raise CliError(str(why.get("detail") or why.get("reason") or "it failed"), ExitCode.FAILED)
    if final.get("state") == "cancelled":
        raise CliError("the turn was cancelled", ExitCode.FAILED)
    return ExitCode.DECLINED if final.get("declined") else ExitCode.OK


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    top_k: Annotated[int, typer.Option(min=1, max=100, help="How many hits.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Search the documents and show why each hit stands where it stands."""

    async def work(client: Client) -> ExitCode:
        found = await client.post("/v1/search", {"query": _text(query), "top_k": top_k})
        if as_json:
            print(json.dumps(found, ensure_ascii=False))
        else:
            render.print_hits(found["hits"])
        return ExitCode.OK if found["hits"] else ExitCode.FAILED

    _run(work)


@app.command()
def status(
    document: Annotated[str | None, typer.Argument(help="A document's id.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show whether the platform is ready and the newest documents, or one document."""

    async def work(client: Client) -> ExitCode:
        if document:
            found = await client.get(f"/v1/documents/{document}")
            print(json.dumps(found, ensure_ascii=False, indent=None if as_json else 2))
            return ExitCode.OK
        readiness = await client.readiness()
        documents = (await client.get("/v1/documents", limit=20))["items"]
        if as_json:
            print(json.dumps({**readiness, "documents": documents}, ensure_ascii=False))
        else:
            missing = ", ".join(readiness["missing"])
            render.out.print("ready" if readiness["ready"] else f"not ready: {missing}")
            render.out.print(render.document_table(documents))
        return ExitCode.OK if readiness["ready"] else ExitCode.UNREACHABLE

    _run(work)


if __name__ == "__main__":
    app()
