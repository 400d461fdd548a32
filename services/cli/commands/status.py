"""`status`."""

from typing import Annotated

import typer

from services.cli import render
from services.cli.client import Client
from services.cli.errors import ExitCode
from services.cli.running import AsJson, print_json, run
from services.cli.uploads import FINAL_STATES


def status(
    document: Annotated[str | None, typer.Argument(help="A document's id.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show whether the platform is ready and the newest documents, or one document."""

    async def work(client: Client) -> ExitCode:
        if document:
            found = await client.get(f"/v1/documents/{document}")
            if found["state"] not in FINAL_STATES:
                found["why"] = (await client.get(f"/v1/documents/{document}/why"))["words"]
            print_json(found, indent=None if as_json else 2)
            return ExitCode.OK
        readiness = await client.readiness()
        documents = (await client.get("/v1/documents", limit=20))["items"]
        if as_json:
            print_json({**readiness, "documents": documents})
        else:
            missing = ", ".join(readiness["missing"])
            render.out.print("ready" if readiness["ready"] else f"not ready: {missing}")
            render.out.print(render.document_table(documents))
        return ExitCode.OK if readiness["ready"] else ExitCode.UNREACHABLE

    run(work)
