"""`topics`: what the broker must hold before any service uses it."""

from typing import Annotated

import typer

from services.cli import render
from services.cli.errors import ExitCode
from services.cli.running import AsJson, print_json, run_alone, settings

app = typer.Typer(help="Topics of the broker at KAFKA_BOOTSTRAP.")


@app.command()
def apply(
    replication_factor: Annotated[
        int, typer.Option(min=1, help="Copies of each topic that is created.")
    ] = 1,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds to wait for the broker.")] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Create the topics that are missing and give a new log its epoch. Safe to repeat.

    Run it after `sluice migrate`, before the services of a new version start. Exits with 1 when a
    topic is there with other partitions, with 3 when the broker or SQL is away.
    """
    from libs.contracts import topic_specs
    from libs.eventbus.preparation import prepare_broker
    from services.cli.database import own_database

    async def main() -> ExitCode:
        config = settings()
        async with own_database(config.sql_url) as db:
            epoch = await prepare_broker(
                config.kafka,
                db,
                replication_factor=replication_factor,
                timeout_s=timeout,
            )
        wanted = len(topic_specs())
        if as_json:
            print_json({"topics": wanted, "epoch": epoch})
        else:
            render.out.print(f"{wanted} topics are there")
        return ExitCode.OK

    run_alone(main)
