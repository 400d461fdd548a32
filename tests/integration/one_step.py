"""A pipeline of one step on the platform's own parts, for tests that take the broker away."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from sqlalchemy import insert, select, update

from libs.contracts import DocumentUploaded, TurnControl
from libs.eventbus import Subscriptions
from libs.eventbus.reconciler import Unfinished
from libs.service.process import Platform, open_platform
from libs.service.settings import PlatformSettings
from libs.storage.sql import UnitOfWork
from libs.storage.sql.tables import leases


def upload(number: int) -> DocumentUploaded:
    return DocumentUploaded("acme", f"d{number:03}", 1, "a.txt", "text/plain", "k", 1)


class Pipeline:
    """A one-step pipeline: a lease row stands for a document, its holder for the state."""

    kind = "document"

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.gate = asyncio.Event()
        self.gate.set()
        self.effects: Counter[str] = Counter()
        self.heard: list[str] = []

    async def submit(self, numbers: range) -> None:
        for number in numbers:
            async with self.platform.db.work() as sql:
                row = {"name": upload(number).document_id, "holder": "uploaded", "expires_at": 0}
                await sql.execute(insert(leases).values(**row))
                await sql.emit(upload(number))

    async def handle(self, event: DocumentUploaded) -> None:
        await self.gate.wait()
        async with self.platform.db.work() as sql:
            done = (
                update(leases)
                .where(leases.c.name == event.document_id, leases.c.holder == "uploaded")
                .values(holder="indexed")
            )
            if await sql.compare_and_set(done):
                self.effects[event.document_id] += 1

    async def hear(self, event: TurnControl) -> None:
        self.heard.append(event.turn_id)

    async def unfinished(
        self, sql: UnitOfWork, after: str, limit: int
    ) -> Sequence[tuple[str, Unfinished]]:
        rows = await sql.rows(
            select(leases.c.name)
            .where(leases.c.holder == "uploaded", leases.c.name > after)
            .order_by(leases.c.name)
            .limit(limit)
        )
        return [(row["name"], Unfinished(upload(int(row["name"][1:])), "parser")) for row in rows]

    async def tell(self, turn_id: str) -> None:
        async with self.platform.db.work() as sql:
            await sql.emit(TurnControl("acme", turn_id, "cancel"))


@asynccontextmanager
async def pipeline(settings: PlatformSettings) -> AsyncIterator[Pipeline]:
    async with open_platform(settings, "parser") as platform:
        made = Pipeline(platform)
        subscriptions = Subscriptions().on(DocumentUploaded, made.handle)
        works = [
            asyncio.create_task(platform.consume(subscriptions, group_id="parser")),
            asyncio.create_task(platform.listen(TurnControl, made.hear)),
            asyncio.create_task(platform.reconcile(made)),
        ]
        yield made
        platform.stopping.set()
        await asyncio.gather(*works)
