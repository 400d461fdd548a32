"""The `sluice` command."""

import os
import sys

import typer

from libs.observability import configure_logging
from services.cli.commands import dlq, evaluating, keys, topics
from services.cli.commands.asking import ask, search
from services.cli.commands.fsck import fsck
from services.cli.commands.inspecting import inspect
from services.cli.commands.lag import lag
from services.cli.commands.migrate import migrate
from services.cli.commands.planning import plan
from services.cli.commands.reindex import reindex
from services.cli.commands.status import status
from services.cli.commands.stuck import resume, stuck
from services.cli.commands.uploading import upload

app = typer.Typer(
    help="Sluice: documents in, traceable answers out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.command()
def up() -> None:
    """Start the whole product on this machine; Ctrl-C stops it."""
    os.execv(sys.executable, [sys.executable, "-m", "services.local"])  # noqa: S606


_USING = (upload, ask, search, status, inspect, plan)
_OPERATING = (lag, stuck, resume, fsck, reindex, migrate)
for command in (*_USING, *_OPERATING):
    app.command()(command)
for name, group in (("dlq", dlq), ("eval", evaluating), ("keys", keys), ("topics", topics)):
    app.add_typer(group.app, name=name, no_args_is_help=True)


def main() -> None:
    """The command as people start it: what it says goes to stdout, what goes wrong to stderr."""
    configure_logging("cli", "WARNING")
    app()


if __name__ == "__main__":
    main()
