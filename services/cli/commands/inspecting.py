"""`inspect`."""

from pathlib import Path
from typing import Annotated

import typer

from services.cli import render
from services.cli.client import Client
from services.cli.errors import CliError, ExitCode
from services.cli.inspection.gathering import gather
from services.cli.inspection.page import page
from services.cli.running import run


def inspect(
    document: Annotated[str, typer.Argument(help="A document's id.")],
    question: Annotated[
        list[str] | None,
        typer.Option(help="Show what the search does for this question; may be repeated."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write (inspect-DOCUMENT.html).")
    ] = None,
    rows: Annotated[
        int, typer.Option(min=1, max=10_000, help="Blocks, and chunks, to show at most.")
    ] = 1_000,
) -> None:
    """Write a report: what was read of a document, how it was cut, and what a question finds."""
    questions = [each.encode("utf-8", "replace").decode() for each in question or ()]

    async def work(client: Client) -> ExitCode:
        found = await gather(client, document, questions, rows)
        path = out or Path(f"inspect-{found.document['id']}.html")
        try:
            path.write_text(page(found), encoding="utf-8", errors="replace")
        except OSError as exc:
            why = exc.strerror or exc.__class__.__name__
            raise CliError(f"{path} cannot be written: {why}", ExitCode.USAGE) from exc
        render.out.print(str(path))
        return ExitCode.OK

    run(work)
