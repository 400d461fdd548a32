"""`plan`."""

from typing import Annotated, Any

import typer

from services.cli import render
from services.cli.client import Client, Json
from services.cli.errors import CliError, ExitCode
from services.cli.running import AsJson, print_json, run

_SIZES = ("child_max_chars", "table_max_chars", "parent_max_chars", "parent_min_chars")
_NAMES = ("strategies", *_SIZES)


def plan(
    document: Annotated[str, typer.Argument(help="A document's id.")],
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Override a field, e.g. child_max_chars=300 or strategies=structure,semantic; "
            "may be repeated. The document is cut anew, without being parsed again.",
        ),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what the plan would give; change nothing.")
    ] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Back to the recommended plan.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Chunks of a preview to show.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show how a document is cut into chunks and why, preview another plan, or set one."""

    async def work(client: Client) -> ExitCode:
        wanted = _wanted(set_ or [])
        if reset and wanted:
            raise CliError("--reset sets nothing: leave out --set", ExitCode.USAGE)
        path = f"/v1/documents/{document}/plan"
        if preview:
            found = await client.post(f"{path}/preview?limit={limit}", wanted)
        elif wanted or reset:
            found = await client.put(path, wanted)
        else:
            found = await client.get(path)
        if as_json:
            print_json(found)
        elif preview:
            _print_preview(found)
        else:
            _print_plan(found)
        return ExitCode.OK

    run(work)


def _wanted(settings: list[str]) -> Json:
    """Raises: CliError."""
    wanted: dict[str, Any] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        if name not in _NAMES or not value:
            known = ", ".join(_NAMES)
            raise CliError(f"--set {setting}: say NAME=VALUE, one of {known}", ExitCode.USAGE)
        if name == "strategies":
            wanted[name] = [part.strip() for part in value.split(",")]
        elif value.isdecimal():
            wanted[name] = int(value)
        else:
            raise CliError(f"--set {setting}: a number of characters is wanted", ExitCode.USAGE)
    return wanted


def _print_plan(found: Json) -> None:
    render.out.print(f"generation {found['generation']}, {found['state']}")
    used, recommended = found["used"], found["recommended"]
    if used is None:
        asked = ", ".join(f"{name}={value}" for name, value in found["requested"].items())
        render.out.print(f"to be cut by: {asked or 'what is recommended'}")
        return
    _print_fields(used, recommended or used)


def _print_preview(found: Json) -> None:
    _print_fields(found["plan"], found["recommended"])
    counts = found["counts"]
    extent = "" if found["complete"] else f", of the first {found['chars']} characters"
    render.out.print(f"\n{counts['chunks']} chunks in {counts['parents']} parents{extent}")
    for item in found["items"]:
        place = f"characters {item['start']}-{item['end']} ({item['end'] - item['start']})"
        path = render.shortened(" › ".join(item["heading_path"]), 120)
        render.out.print(f"{item['ordinal'] + 1}. {place}  {path}".rstrip(), style="bold")
        render.out.print(f"   {render.shortened(item['text'])}")


def _print_fields(used: Json, recommended: Json) -> None:
    table = render.table_of("field", "used", "recommended")
    for name in _NAMES:
        table.add_row(name, _said(used[name]), _said(recommended[name]))
    render.out.print(table)
    for reason in used["reasons"]:
        render.out.print(f"- {reason}")


def _said(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
