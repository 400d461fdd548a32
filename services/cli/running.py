"""How every command runs: one client, one exit code, one way to say what went wrong."""

import asyncio
import io
import json
import sys
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from libs.kernel import escape_hidden
from services.cli import render
from services.cli.client import Client
from services.cli.errors import CliError, ExitCode
from services.cli.settings import CliSettings

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def run(work: Callable[[Client], Coroutine[Any, Any, ExitCode]]) -> None:
    """Do a command's work over HTTP and end with its exit code."""

    async def main() -> ExitCode:
        async with Client(settings()) as client:
            return await work(client)

    run_alone(main)


def run_alone(main: Callable[[], Coroutine[Any, Any, ExitCode]]) -> None:
    """`run` for a command that needs no gateway."""
    # File names and answers hold characters that the terminal may not know.
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors="replace")
    try:
        code = asyncio.run(main())
    except CliError as exc:
        render.err.print(f"sluice: {exc}", style="red")
        code = exc.code
    raise typer.Exit(int(code))


def settings() -> CliSettings:
    """Raises: CliError for a setting that cannot be read."""
    try:
        return CliSettings()
    except ValidationError as exc:
        wrong = "; ".join(f"setting {e['loc'][0]}: {e['msg']}" for e in exc.errors())
        raise CliError(wrong, ExitCode.USAGE) from None


def print_json(value: Any, *, indent: int | None = None) -> None:
    """One JSON value, on a line of its own unless it is indented, which no terminal obeys."""
    print(escape_hidden(json.dumps(value, ensure_ascii=False, indent=indent)))
