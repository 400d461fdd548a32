"""`upload`."""

from pathlib import Path
from typing import Annotated

import typer

from services.cli import render
from services.cli.client import Client
from services.cli.errors import CliError, ExitCode
from services.cli.running import AsJson, print_json, run
from services.cli.uploads import collect, upload_all


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
        with render.upload_progress(len(files), quiet=as_json) as changed:
            uploads = await upload_all(client, files, fields, wait=wait, changed=changed)
        if as_json:
            for one in uploads:
                print_json(one.report())
        else:
            render.out.print(render.upload_summary(uploads))
            render.print_failures(uploads)
        bad = any(one.state in {"failed", "refused", "cancelled"} for one in uploads)
        return ExitCode.FAILED if bad else ExitCode.OK

    run(work)
