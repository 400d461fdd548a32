"""`lag`: what waits where, and who should be working on it."""

from rich.table import Table

from services.cli import render
from services.cli.client import Client, Json
from services.cli.errors import ExitCode
from services.cli.running import AsJson, print_json, run


def lag(as_json: AsJson = False) -> None:
    """Show every consumer group's backlog with a verdict in words.

    Exits with 1 when messages wait and nobody can work on them. Quiet retry topics are left out.
    """

    async def work(client: Client) -> ExitCode:
        report = await client.get("/v1/admin/lag")
        if as_json:
            print_json(report)
        else:
            render.out.print(_groups(report["groups"]))
            for line in _remarks(report):
                render.out.print(line)
        return ExitCode.FAILED if report["state"] == "stalled" else ExitCode.OK

    run(work)


def _groups(groups: list[Json]) -> Table:
    table = render.table_of("group", "topic", "waiting", "verdict")
    for group in groups:
        if group["kind"] == "retry" and group["state"] == "idle" and not group["waiting"]:
            continue
        style = {"stalled": "red", "slow": "yellow"}.get(group["state"])
        waiting = str(group["waiting"])
        table.add_row(group["group"], group["topic"], waiting, group["verdict"], style=style)
    return table


def _remarks(report: Json) -> list[str]:
    lines = []
    workers = ", ".join(f"{w['service']} {w['ready']}/{w['live']}" for w in report["workers"])
    lines.append(f"\nworkers (ready/alive): {workers}")
    unsent = report["unsent"]
    if unsent["rows"]:
        due = unsent["oldest_due_s"]
        since = "none of them due yet" if due is None else f"the oldest due for {due:.0f} s"
        lines.append(f"not sent to the broker yet: {unsent['rows']} events, {since}")
    for letters in report["dead_letters"]:
        if letters["unhandled"]:
            hint = f"`sluice dlq list --group {letters['group']}`"
            lines.append(f"dead letters: {letters['unhandled']} of {letters['topic']}: {hint}")
    return lines
