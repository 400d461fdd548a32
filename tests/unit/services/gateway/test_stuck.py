"""Why work has not moved: each state that it can wait in is told apart, in words."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from libs.eventbus.backlog import Backlog
from libs.kernel import new_id, now_us
from libs.storage.sql import UnitOfWork, documents, leases
from libs.storage.sql.epochs import store_epoch
from libs.storage.sql.tables import outbox
from libs.storage.sql.workers import Worker, beat
from services.gateway.domain.lag import Workers
from services.gateway.domain.standing import Way, explain, may_help
from tests.library import Library
from tests.unit.services.gateway.conftest import Stage

UPLOADED = "documents.uploaded.v1"
READY = Workers("parser", 2, 2)
WAY = Way(
    sent=True,
    age_s=5.0,
    due_in_s=0.0,
    is_retry=False,
    attempt=1,
    error="",
    log_is_lost=False,
    before=3,
)


def words(way: Way | None, workers: Workers = READY, *, leased: bool = False) -> tuple[str, str]:
    why = explain(way, workers, leased=leased)
    return why.reason, why.words


@pytest.mark.parametrize(
    ("way", "workers", "reason", "said"),
    [
        (WAY, READY, "queued", "queued, at most 3 before it: 2 parser running"),
        (replace(WAY, before=0), READY, "in-work", "in work or next: 2 parser running"),
        (WAY, Workers("parser", 0, 0), "no-worker", "but no parser is running"),
        (WAY, Workers("parser", 1, 0, ["sql"]), "no-worker", "waits for sql"),
        (WAY, Workers("parser", 1, 0, ["failing-messages"]), "stopped", "sluice stuck"),
        (replace(WAY, before=-1), READY, "lost", "nothing came of it"),
        (replace(WAY, before=None), READY, "unknown", "broker does not answer"),
        (replace(WAY, log_is_lost=True), READY, "lost", "lost with the broker's log"),
        (None, READY, "lost", "not known any more"),
        (replace(WAY, sent=False), READY, "unsent", "not reached the broker yet, for 5 s"),
    ],
)
def test_every_way_to_wait_has_its_own_words(
    way: Way | None, workers: Workers, reason: str, said: str
) -> None:
    found = words(way, workers)
    assert found[0] == reason
    assert said in found[1]


def test_a_retry_says_when_it_comes_and_after_which_error() -> None:
    way = replace(WAY, sent=False, is_retry=True, due_in_s=40.0, attempt=3, error="milvus is away")
    assert words(way) == ("retry", "try 3 comes in 40 s, after: milvus is away")


def test_a_rate_limit_shows_as_one_with_its_end() -> None:
    way = replace(WAY, sent=False, is_retry=True, due_in_s=20.0, attempt=2, error="HTTP 429")
    assert words(way) == ("rate-limited", "rate limited: try 2 comes in 20 s")


@pytest.mark.parametrize(
    "error",
    [
        "HTTP 429",
        "milvus: request is rejected by grpc RateLimiter middleware",
        "rate limit exceeded[rate=0.1]",
        "rate-limited",
        "Too Many Requests",
    ],
)
def test_a_rate_limit_is_known_by_what_backends_say(error: str) -> None:
    way = replace(WAY, sent=False, is_retry=True, due_in_s=20.0, attempt=2, error=error)
    assert words(way)[0] == "rate-limited"


def test_a_message_that_was_tried_says_after_which_error_it_waits() -> None:
    paused = Workers("parser", 1, 0, ["backend"])
    way = replace(WAY, before=0, is_retry=True, error="milvus is away")
    reason, said = words(way, paused)
    assert (reason, said) == (
        "no-worker",
        "queued (next), but parser is running, but waits for backend; it was tried before: "
        "milvus is away",
    )
    assert words(way)[1] == "in work or next: 2 parser running; it was tried before: milvus is away"
    assert words(replace(way, error="HTTP 429"), paused)[0] == "rate-limited"


def test_what_a_process_holds_is_in_work_whatever_the_broker_says() -> None:
    assert words(None, leased=True) == ("in-work", "in work at the parser now")


def test_only_failures_that_a_later_try_can_change_are_resumable() -> None:
    assert may_help("index", "retries-exhausted")
    assert may_help("parse", "internal-error")
    assert not may_help("parse", "encrypted")


async def uploaded(stage: Stage, document_id: str = "d1", tenant: str = "acme") -> None:
    library = Library(stage.gateway.db)
    await library.record(document_id, tenant=tenant, state="uploaded", active=None)
    async with stage.gateway.db.work() as sql:
        row = await documents.load(sql, tenant, document_id)
        await sql.emit(documents.uploaded_event(row))
        await store_epoch(sql, "e1")
        await _sent(sql, document_id, offset=7)
    await library.change(document_id, updated_at=now_us() - 120_000_000)


async def _sent(sql: UnitOfWork, key: str, *, offset: int) -> None:
    place = {"partition": 2, "offset": offset, "sent_at": now_us(), "broker_epoch": "e1"}
    await sql.execute(update(outbox).where(outbox.c.key == key).values(**place))


async def stuck(stage: Stage, tenant: str = "acme", **parameters: Any) -> dict[str, Any]:
    async with await stage.admin(tenant) as client:
        answer = await client.get("/v1/admin/stuck", params=parameters)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_waiting_document_is_shown_with_its_place_in_the_queue(stage: Stage) -> None:
    await uploaded(stage)
    stage.backlogs.known["parser", (UPLOADED, 2)] = Backlog(4, 9)
    (found,) = (await stuck(stage))["unfinished"]
    assert found["words"] == "queued (at most 3 before it), but no parser is running"
    async with stage.gateway.db.work() as sql:
        await beat(sql, Worker(new_id(), "parser", "host", 1, now_us()), [])
    (found,) = (await stuck(stage))["unfinished"]
    assert (found["kind"], found["id"], found["why"]) == ("document", "d1", "queued")
    assert (await stuck(stage, older_than_s=3600))["unfinished"] == []


async def test_the_same_is_told_of_one_document_to_any_reader(stage: Stage) -> None:
    await uploaded(stage)
    stage.backlogs.known["parser", (UPLOADED, 2)] = Backlog(7, 9)
    async with await stage.admin(role="reader") as client:
        told = (await client.get("/v1/documents/d1/why")).json()
    assert told["why"] == "no-worker"
    async with await stage.admin("other", role="reader") as client:
        assert (await client.get("/v1/documents/d1/why")).status_code == 404


async def test_a_document_whose_event_is_gone_is_called_lost(stage: Stage) -> None:
    await uploaded(stage)
    async with stage.gateway.db.work() as sql:
        await store_epoch(sql, "e2")
    (found,) = (await stuck(stage))["unfinished"]
    assert (found["why"], "broker's log" in found["words"]) == ("lost", True)
    async with stage.gateway.db.work() as sql:
        await sql.execute(delete(outbox))
    (found,) = (await stuck(stage))["unfinished"]
    assert found["why"] == "lost"


async def test_without_a_broker_everything_but_the_place_is_told(stage: Stage) -> None:
    await uploaded(stage)
    stage.backlogs.away = True
    (found,) = (await stuck(stage))["unfinished"]
    assert found["why"] == "unknown"


async def test_an_open_turn_and_a_deletion_are_shown_and_a_held_turn_is_in_work(
    stage: Stage,
) -> None:
    turn_id = await stage.ask()
    await Library(stage.gateway.db).record("gone", tenant="acme", state="deleted", active=None)
    async with stage.gateway.db.work() as sql:
        await leases.acquire(sql, f"turn:{turn_id}", "somebody", ttl_s=60)
    found = {row["kind"]: row for row in (await stuck(stage, older_than_s=0))["unfinished"]}
    assert (found["turn"]["id"], found["turn"]["why"]) == (turn_id, "in-work")
    assert (found["deletion"]["id"], found["deletion"]["why"]) == ("gone", "lost")


async def test_failed_documents_say_why_and_whether_a_resume_can_help(stage: Stage) -> None:
    library = Library(stage.gateway.db)
    for document_id, how, reason in (
        ("a", "index", "retries-exhausted"),
        ("b", "parse", "encrypted"),
    ):
        await library.record(document_id, tenant="acme", state="failed", active=None)
        await library.change(document_id, stage=how, reason=reason, detail="Because.")
    failed = (await stuck(stage))["failed"]
    assert [(row["id"], row["resumable"]) for row in failed] == [("a", True), ("b", False)]
    assert failed[1]["words"] == "failed at parse (encrypted): Because."


async def test_every_failed_document_comes_up_once_page_by_page(stage: Stage) -> None:
    library = Library(stage.gateway.db)
    for n in range(5):
        await library.record(f"d{n}", tenant="acme", state="failed", active=None)
        await library.change(f"d{n}", updated_at=1_000 + n // 2)  # some at the same moment
    seen, after = [], None
    while True:
        cursor: dict[str, Any] = {} if after is None else {"failed_after": after}
        found = await stuck(stage, limit=2, **cursor)
        seen += [row["id"] for row in found["failed"]]
        after = found["next_failed"]
        if after is None:
            break
    assert seen == [f"d{n}" for n in range(5)]
    async with await stage.admin() as client:
        bad = await client.get("/v1/admin/stuck", params={"failed_after": "x"})
    assert bad.status_code == 422


async def test_a_list_that_is_cut_says_so(stage: Stage) -> None:
    for n in range(3):
        await uploaded(stage, f"d{n}")
    assert not (await stuck(stage, limit=3))["more"]
    cut = await stuck(stage, limit=2)
    assert (len(cut["unfinished"]), cut["more"]) == (2, True)


async def test_another_tenants_work_is_not_shown(stage: Stage) -> None:
    await uploaded(stage)
    await stage.ask()
    nothing = {"unfinished": [], "failed": [], "more": False, "next_failed": None}
    assert await stuck(stage, "other", older_than_s=0) == nothing
    async with await stage.admin(role="member") as client:
        assert (await client.get("/v1/admin/stuck")).status_code == 403
    async with stage.gateway.db.reading() as sql:
        assert await sql.rows(select(outbox.c.id)) != []
