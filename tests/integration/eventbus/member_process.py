"""A group member as a process of its own, for tests that kill or freeze it.

Arguments: the broker, the database's URL, the member's name, and a file for whose appearance the
handlers of documents named `slow…` wait. A document is a lease row; whoever turns its holder from
`uploaded` into his own name has had the effect.
"""

import asyncio
import sys
from pathlib import Path

from sqlalchemy import update

from libs.contracts import DocumentUploaded
from libs.eventbus import Consumer, KafkaConnection, Subscriptions
from libs.storage.sql import Database, open_database
from libs.storage.sql.tables import leases
from tests.integration.eventbus.kafka_bus import GROUP, SESSION_S
from tests.suites.eventbus import POLICIES


async def take(db: Database, document_id: str, name: str) -> bool:
    """Have the effect, once; False: somebody else has had it."""
    async with db.work() as sql:
        undone = (leases.c.name == document_id, leases.c.holder == "uploaded")
        return await sql.compare_and_set(update(leases).where(*undone).values(holder=name))


async def main(bootstrap: str, url: str, name: str, go: Path) -> None:
    db = open_database(url)

    async def handle(event: DocumentUploaded) -> None:
        if event.document_id.startswith("slow"):
            while not go.exists():  # noqa: ASYNC110, ASYNC240 - the sign comes from outside
                await asyncio.sleep(0.05)
        if not await take(db, event.document_id, name):
            print(f"late: {event.document_id}", flush=True)

    consumer = Consumer(
        KafkaConnection(bootstrap, session_timeout_s=SESSION_S),
        db,
        Subscriptions().on(DocumentUploaded, handle),
        group_id=GROUP,
        policies=POLICIES,
    )
    await consumer.run(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])))
