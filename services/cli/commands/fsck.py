"""`fsck`: do SQL, the object store and both search indexes agree?"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli import render
from services.cli.errors import ExitCode
from services.cli.running import AsJson, print_json, run_alone, settings

if TYPE_CHECKING:
    from libs.service.fsck import Tally


def fsck(
    repair: Annotated[bool, typer.Option("--repair", help="Set the repair going, too.")] = False,
    tenant: Annotated[str | None, typer.Option(help="Look at this tenant alone.")] = None,
    grace: Annotated[float, typer.Option(min=0, help="Seconds: leave newer changes alone.")] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Compare SQL, files, vectors and keywords about every document, while the platform runs.

    Exits with 0 when they agree, with 1 when something was found (repaired or not), with 3 when a
    store is away. Work in flight is no fault. Repairs are done by the running platform: look
    again a minute later.
    """
    from libs.service.fsck import Examiner, Repairs, Tally, scan
    from services.cli.stores import open_stores

    async def main() -> ExitCode:
        async with open_stores(settings()) as stores:
            tally, examiner = Tally(), Examiner(stores, grace_s=grace)
            repairs = Repairs(stores.db, stores.objects) if repair else None
            async for seen in scan(stores, examiner, tally, tenant=tenant):
                done = await repairs.repair(seen) if repairs else None
                for finding in seen.findings:
                    if as_json:
                        print_json({**finding.shown(), "repair": done})
                    else:
                        render.print_finding(finding.shown(), done)
        if as_json:
            print_json({"summary": asdict(tally)})
        else:
            render.out.print(_summary(tally, repaired=repair))
        return ExitCode.FAILED if tally.findings else ExitCode.OK

    run_alone(main)


def _summary(tally: "Tally", *, repaired: bool) -> str:
    looked = f"{tally.documents} documents with {tally.chunks} chunks"
    busy = f"; {tally.in_progress} in progress" if tally.in_progress else ""
    if not tally.findings:
        return f"clean: {looked}, every store agrees{busy}"
    what = "finding" if tally.findings == 1 else "findings"
    if not repaired:
        hint = "repair with `sluice fsck --repair`"
    else:
        hint = "repairs are under way: look again in a minute"
    return f"{tally.findings} {what} in {looked}{busy}: {hint}"
