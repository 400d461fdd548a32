"""`migrate`: the database's tables."""

from services.cli import render
from services.cli.errors import CliError, ExitCode
from services.cli.running import AsJson, print_json, run_alone, settings


def migrate(as_json: AsJson = False) -> None:
    """Bring the database at DATABASE_URL to the schema of this version. Safe to repeat.

    Run it before the services of a new version start; it keeps what is there. Exits with 1 when the
    schema is newer than this version, with 3 when the database is away.
    """
    from libs.storage.sql.schema import SchemaError
    from services.cli.database import own_database

    async def main() -> ExitCode:
        async with own_database(settings().sql_url) as db:
            try:
                before, after = await db.create_schema()
            except SchemaError as exc:
                raise CliError(str(exc), ExitCode.FAILED) from exc
        if as_json:
            print_json({"before": before, "schema": after})
        elif before == after:
            render.out.print(f"the schema is {after} already")
        else:
            render.out.print(f"the schema is {after} now")
        return ExitCode.OK

    run_alone(main)
