"""`keys`: who may do what in the tenant of the key in use."""

from typing import Annotated

import typer

from services.cli import render
from services.cli.client import Client
from services.cli.errors import CliError, ExitCode
from services.cli.running import AsJson, print_json, run, run_alone, settings

app = typer.Typer(help="API keys of your tenant: list, create, revoke.")


@app.command("list")
def list_keys(as_json: AsJson = False) -> None:
    """List the keys, revoked ones too; the keys themselves are known to nobody any more."""

    async def work(client: Client) -> ExitCode:
        keys = (await client.get("/v1/admin/keys"))["items"]
        if as_json:
            for key in keys:
                print_json(key)
            return ExitCode.OK
        table = render.table_of("id", "role", "created", "revoked", "name")
        for key in keys:
            revoked = (key["revoked_at"] or "")[:19]
            table.add_row(key["id"], key["role"], key["created_at"][:19], revoked, key["name"])
        render.out.print(table)
        return ExitCode.OK

    run(work)


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    role: Annotated[str, typer.Option(help="reader, member or admin.")] = "member",
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, once: only its hash is kept."""

    async def work(client: Client) -> ExitCode:
        made = await client.post("/v1/admin/keys", {"name": name, "role": role})
        if as_json:
            print_json(made)
        else:
            print(made["key"])
            render.err.print(f"(key {made['id']}, {role}; it is not shown again)")
        return ExitCode.OK

    run(work)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(help="The key's id, from `keys list`.")],
    as_json: AsJson = False,
) -> None:
    """Refuse a key from its next request on."""

    async def work(client: Client) -> ExitCode:
        await client.delete(f"/v1/admin/keys/{key}")
        if as_json:
            print_json({"id": key, "revoked": True})
        else:
            render.out.print(f"revoked {key}")
        return ExitCode.OK

    run(work)


@app.command()
def bootstrap(
    tenant: Annotated[str, typer.Option(help="Whose administrator it is.")] = "main",
    as_json: AsJson = False,
) -> None:
    """Let in the key in SLUICE_API_KEY as an administrator's: the first one of a new platform.

    Writes to SQL itself, with the settings of the services, so it needs no gateway and no other
    key. Safe to repeat; a key that was revoked stays so.
    """
    from libs.storage.sql import api_keys
    from services.cli.database import own_database

    async def main() -> ExitCode:
        config = settings()
        if not config.api_key:
            raise CliError("set SLUICE_API_KEY to the key to let in", ExitCode.USAGE)
        async with own_database(config.sql_url) as db, db.work() as sql:
            new = await api_keys.ensure(sql, config.api_key, tenant, role="admin", name="bootstrap")
        if as_json:
            print_json({"tenant": tenant, "new": new})
        else:
            known = "let in from now on" if new else "known already"
            render.out.print(f"the key is {known}: administrator of {tenant}")
        return ExitCode.OK

    run_alone(main)
