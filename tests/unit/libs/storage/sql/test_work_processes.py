"""Read-modify-writers in several processes lose nothing."""

import asyncio
import sys

from sqlalchemy import insert, select

from libs.kernel import now_us
from libs.storage.sql import Database
from libs.storage.sql.tables import broker_epoch

WRITERS, STEPS = 4, 10  # in each of two processes

WRITER_SCRIPT = """
import asyncio, sys
from sqlalchemy import select, update
from libs.storage.sql import open_database
from libs.storage.sql.tables import broker_epoch as row

async def write(db):
    for _ in range(int(sys.argv[3])):
        async with db.work() as sql:
            value = int(await sql.scalar(select(row.c.epoch).with_for_update()))
            await sql.execute(update(row).values(epoch=str(value + 1)))

async def main():
    db = open_database(sys.argv[1])
    await asyncio.gather(*(write(db) for _ in range(int(sys.argv[2]))))
    await db.close()

asyncio.run(main())
"""


async def test_eight_writers_in_two_processes_lose_nothing(db: Database, sql_url: str) -> None:
    async with db.work() as sql:
        await sql.execute(insert(broker_epoch).values(id=1, epoch="0", seen_at=now_us()))

    writers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER_SCRIPT, sql_url, str(WRITERS), str(STEPS)
        )
        for _ in range(2)
    ]
    exit_codes = [await writer.wait() for writer in writers]

    assert exit_codes == [0, 0]
    assert await counted(db) == 2 * WRITERS * STEPS


async def counted(db: Database) -> int:
    async with db.reading() as sql:
        return int(await sql.scalar(select(broker_epoch.c.epoch)))
