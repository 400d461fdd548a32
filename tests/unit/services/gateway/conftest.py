"""A gateway on SQLite, keys of two tenants, and an executor that runs from a script."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from libs.contracts import TurnReply
from libs.retrieval import Query, Result
from libs.retrieval.types import Hit, Scores
from libs.storage.sql import Database, api_keys, turns
from libs.storage.sql.turn_events import reply_of
from services.gateway.app import create_app
from services.gateway.deps import Gateway
from services.gateway.limits import RateLimit
from services.gateway.replies import Replies
from services.gateway.settings import GatewaySettings
from tests.fakes_backlogs import FakeBacklogs

Script = Sequence[tuple[str, Mapping[str, Any]]]
SCRIPT: Script = (
    ("status", {"status": "retrieving"}),
    ("delta", {"text": "闸门 "}),
    ("delta", {"text": "is a gate [1]."}),
    ("citation", {"n": 1, "document_id": "d1", "start": 0, "end": 4}),
)
DONE = turns.Outcome("done", answer="闸门 is a gate [1].", citations=[{"n": 1}])


@dataclass
class FakeSearch:
    """`Search` over one hit that only the tenant `acme` has."""

    asked: list[Query] = field(default_factory=list)

    async def find(self, query: Query) -> Result:
        self.asked.append(query)
        hit = Hit("d1.1.c0", "d1", "a.txt", "a gate", 0, 6, 1, ("Intro",), Scores(0.5, vector=0.9))
        return Result([hit] if query.tenant == "acme" else [])


@dataclass
class FakeExecutor:
    """Appends scripted events through the repository and fans them out, as an executor does."""

    db: Database
    hear: Callable[[TurnReply], Awaitable[None]]

    async def say(self, turn_id: str, script: Script, *, heard: bool = True) -> None:
        for event in script:
            async with self.db.work() as sql:
                stored = await turns.append_events(sql, "acme", turn_id, [event])
            if heard:
                await self.hear(reply_of("acme", stored[0]))

    async def end(self, turn_id: str, outcome: turns.Outcome = DONE, *, heard: bool = True) -> None:
        async with self.db.work() as sql:
            terminal = await turns.finish(sql, "acme", turn_id, outcome)
        if heard and terminal is not None:
            await self.hear(reply_of("acme", terminal))

    async def answer(self, turn_id: str, *, heard: bool = True) -> None:
        await self.say(turn_id, SCRIPT, heard=heard)
        await self.end(turn_id, heard=heard)


@dataclass
class Stage:
    """Everything a gateway test plays with."""

    gateway: Gateway
    executor: FakeExecutor
    search: FakeSearch
    announced: list[tuple[TurnReply, int]]
    missing: list[str]
    keys: dict[str, str]
    backlogs: FakeBacklogs

    def client(self, tenant: str | None = "acme", **headers: str) -> httpx.AsyncClient:
        if tenant is not None:
            headers["Authorization"] = f"Bearer {self.keys[tenant]}"
        transport = httpx.ASGITransport(create_app(self.gateway), raise_app_exceptions=False)
        return httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers=headers, timeout=30
        )

    async def admin(self, tenant: str = "acme", role: str = "admin") -> httpx.AsyncClient:
        """A client with a key of that role."""
        async with self.gateway.db.work() as sql:
            made = await api_keys.create(sql, tenant, role=role, name=role)
        self.keys[f"{tenant} {role}"] = made.clear
        return self.client(f"{tenant} {role}")

    async def ask(self, text: str = "What is a sluice?") -> str:
        async with self.gateway.db.work() as sql:
            conversation_id = await turns.create_conversation(sql, "acme")
            turn = await turns.create_turn(sql, "acme", conversation_id, text, 3)
        return str(turn["id"])


@pytest.fixture
def settings(tmp_path: Path) -> GatewaySettings:
    return GatewaySettings(home=tmp_path, answer_timeout_s=20.0, max_question_chars=1_000)


@pytest.fixture
async def stage(db: Database, settings: GatewaySettings) -> AsyncIterator[Stage]:
    keys = {}
    async with db.work() as sql:
        for tenant in ("acme", "other"):
            keys[tenant] = (await api_keys.create(sql, tenant, role="member", name="test")).clear
    replies, search = Replies(db, poll_s=0.05), FakeSearch()
    announced: list[tuple[TurnReply, int]] = []
    missing: list[str] = []
    backlogs = FakeBacklogs()

    async def announce(reply: TurnReply, partition: int) -> None:
        announced.append((reply, partition))
        await replies.hear(reply)

    async def names() -> list[str]:
        return missing

    async with httpx.AsyncClient(base_url="http://127.0.0.1:1") as nobody:
        gateway = Gateway(
            settings=settings,
            db=db,
            replies=replies,
            reply_partition=3,
            announce=announce,
            search=search,
            ingest=nobody,
            backlogs=backlogs,
            missing=names,
            rate=RateLimit(0),
        )
        executor = FakeExecutor(db, replies.hear)
        yield Stage(gateway, executor, search, announced, missing, keys, backlogs)
