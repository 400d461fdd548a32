"""Uploads: all or nothing, in bounded memory, the same content once."""

import asyncio
import hashlib
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from starlette.types import Message

from libs.contracts import DocumentUploaded
from libs.kernel import ConflictError, DiskError
from libs.storage.room import Room
from libs.storage.sql import Database, UnitOfWork, documents
from services.ingest.api.deps import Ingest
from tests.fakes import FakeObjectStore
from tests.outbox import emitted
from tests.unit.services.ingest.api.conftest import MAX_UPLOAD_BYTES, World, assert_problem

URL = "/v1/documents"


async def test_an_upload_is_stored_announced_and_accepted(world: World) -> None:
    data = "第一章 🍜".encode()
    body = await world.upload(
        data, "报告.txt", domain="hr", tags="a, b", priority="urgent", plan='{"child_max_chars":99}'
    )
    assert body == {
        "id": body["id"],
        "name": "报告.txt",
        "state": "uploaded",
        "generation": 1,
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    key = f"acme/{body['id']}/original"
    assert world.objects.objects == {key: data}
    assert await world.events() == [
        DocumentUploaded("acme", body["id"], 1, "报告.txt", "text/plain", key, len(data), "urgent")
    ]
    view = (await world.client.get(f"{URL}/{body['id']}")).json()
    assert (view["domain"], view["tags"], view["size"]) == ("hr", ["a", "b"], len(data))
    assert view["plan"] == {"child_max_chars": 99}
    assert [event["stage"] for event in view["timeline"]] == ["uploaded"]


async def test_known_content_answers_200_and_stores_nothing_more(world: World) -> None:
    first = await world.upload()
    response = await world.client.post(URL, files={"file": ("other.txt", b"hello")})
    assert response.status_code == 200
    assert response.json() == first
    assert response.headers["location"] == f"{URL}/{first['id']}"
    assert len(world.objects.objects) == 1
    assert len(await world.events()) == 1


async def test_concurrent_uploads_of_one_content_make_one_document(world: World) -> None:
    bodies = await asyncio.gather(*(world.upload(b"same" * 1000) for _ in range(12)))
    assert len({body["id"] for body in bodies}) == 1
    assert len(world.objects.objects) == 1
    assert len(await world.events()) == 1


@dataclass(frozen=True)
class ShrinkingRoom(Room):
    """Has room for the first `times` that it is asked."""

    times: int = 0
    asked: list[int] = field(default_factory=list)

    def lack(self, wanted_bytes: int = 0) -> DiskError | None:
        self.asked.append(wanted_bytes)
        return DiskError("no room") if len(self.asked) > self.times else None


async def test_without_room_an_upload_is_507_and_once_there_is_it_is_taken(world: World) -> None:
    ingest: Ingest = world.app.state.ingest
    free_bytes = shutil.disk_usage(world.home).free
    world.app.state.ingest = replace(ingest, room=Room(world.home, 2 * free_bytes))
    response = await world.client.post(URL, files={"file": ("a.txt", b"hello")})
    assert_problem(response, 507, "disk-full")
    assert "Free some space" in response.json()["detail"]
    assert world.objects.objects == {}
    assert (await world.client.get(URL)).json()["items"] == []
    world.app.state.ingest = replace(ingest, room=Room(world.home))
    assert (await world.upload())["state"] == "uploaded"


async def test_an_upload_that_would_not_fit_is_refused_before_it_is_read(world: World) -> None:
    ingest: Ingest = world.app.state.ingest
    free_bytes = shutil.disk_usage(world.home).free
    world.app.state.ingest = replace(ingest, room=Room(world.home, free_bytes - 10_000_000))

    async def nothing() -> AsyncIterator[bytes]:  # a body that is read is found malformed: 422
        yield b""

    headers = {"Content-Type": "multipart/form-data; boundary=x", "Content-Length": "20000000"}
    world.app.state.ingest = replace(world.app.state.ingest, max_upload_bytes=10**8)
    response = await world.client.post(URL, content=nothing(), headers=headers)
    assert_problem(response, 507, "disk-full")


async def test_room_that_runs_out_during_an_upload_refuses_it_and_keeps_nothing(
    world: World,
) -> None:
    room = ShrinkingRoom(world.home, times=1)
    world.app.state.ingest = replace(world.app.state.ingest, room=room, max_upload_bytes=10**7)
    response = await world.client.post(URL, files={"file": ("a.txt", b"x" * 6_000_000)})
    assert_problem(response, 507, "disk-full")
    assert len(room.asked) == 2
    assert world.objects.objects == {}


@pytest.mark.parametrize(
    ("full", "status", "slug"), [(True, 507, "disk-full"), (False, 503, "disk-not-writable")]
)
async def test_a_store_that_cannot_write_refuses_the_upload(
    world: World, full: bool, status: int, slug: str
) -> None:
    class Fixed(FakeObjectStore):
        async def write(self, key: str, chunks: AsyncIterator[bytes]) -> int:
            raise DiskError("no room", full=full)

    world.app.state.ingest = replace(world.app.state.ingest, objects=Fixed())
    response = await world.client.post(URL, files={"file": ("a.txt", b"hello")})
    assert_problem(response, status, slug)
    assert await world.events() == []


class RacedDatabase(Database):
    """The first unit of work loses against another upload of the same content."""

    lost = False

    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        async with super().work() as sql:
            yield sql
            if not self.lost:
                self.lost = True
                raise ConflictError("content_key is not unique")


async def test_the_loser_of_a_race_finds_the_winners_document(world: World) -> None:
    ingest: Ingest = world.app.state.ingest
    first = await world.upload()
    world.app.state.ingest = replace(ingest, db=RacedDatabase(world.db.engine))
    assert await world.upload() == first
    assert len(world.objects.objects) == 1


async def test_failed_content_is_tried_again(world: World) -> None:
    first = await world.upload()
    await world.fail(first["id"])
    again = await world.client.post(URL, files={"file": ("a.txt", b"hello")})
    assert again.status_code == 202
    assert again.json() == {**first, "generation": 2}
    assert list(world.objects.objects) == [f"acme/{first['id']}/original"]


async def test_an_idempotency_key_repeats_and_refuses_another_file(world: World) -> None:
    headers = {"Idempotency-Key": "upload-1"}
    first = await world.client.post(URL, files={"file": b"one"}, headers=headers)
    await world.fail(first.json()["id"])
    again = await world.client.post(URL, files={"file": b"one"}, headers=headers)
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json()["generation"] == 1
    other = await world.client.post(URL, files={"file": b"two"}, headers=headers)
    assert_problem(other, 422, "idempotency-key-reused")
    assert len(world.objects.objects) == 1
    bad = await world.client.post(URL, files={"file": b"one"}, headers={"Idempotency-Key": "a b"})
    assert_problem(bad, 422, "invalid-request")


async def test_deleted_content_is_a_new_document(world: World) -> None:
    headers = {"Idempotency-Key": "k"}
    first = (await world.client.post(URL, files={"file": b"x"}, headers=headers)).json()
    assert (await world.client.delete(f"{URL}/{first['id']}")).status_code == 204
    second = await world.client.post(URL, files={"file": b"x"}, headers=headers)
    assert second.status_code == 202
    assert second.json()["id"] != first["id"]


async def test_an_empty_file_is_a_document(world: World) -> None:
    body = await world.upload(b"", "empty.txt")
    assert world.objects.objects == {f"acme/{body['id']}/original": b""}


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ('say "hi"\r\n.txt', 'say "hi".txt'),
        ("𠮷🍜.txt", "𠮷🍜.txt"),
        ("x" * 6000 + ".txt", "x" * 251 + ".txt"),
    ],
)
async def test_names_are_cleaned(world: World, raw: str, name: str) -> None:
    assert (await world.upload(name=raw))["name"] == name


@pytest.mark.parametrize(
    ("form", "slug"),
    [
        ({"priority": "high"}, "invalid-request"),
        ({"plan": '{"strategies": ["magic"]}'}, "invalid-request"),
        ({"plan": '{"child_max_chars": 900, "parent_max_chars": 100}'}, "invalid-request"),
        ({"plan": "{"}, "malformed-json"),
        ({"prority": "urgent"}, "invalid-request"),
        ({"tags": ",".join(f"t{i}" for i in range(21))}, "invalid-request"),
        ({"domain": "x" * 65}, "invalid-request"),
        ({"domain": "a\x00b"}, "invalid-request"),
        ({"note": "x" * 70_000}, "field-too-long"),
    ],
)
async def test_bad_fields_are_refused_and_leave_nothing(
    world: World, form: dict[str, str], slug: str
) -> None:
    response = await world.client.post(URL, files={"file": b"data"}, data=form)
    assert_problem(response, 422, slug)
    assert world.objects.objects == {}
    assert await world.events() == []


def multipart(*parts: bytes, end: bytes = b"--b--\r\n") -> bytes:
    return b"".join(b"--b\r\n" + part + b"\r\n" for part in parts) + end


FILE = b'Content-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello'
FORM = {"Content-Type": "multipart/form-data; boundary=b"}


@pytest.mark.parametrize(
    ("headers", "body", "status", "slug"),
    [
        ({"Content-Type": "application/json"}, b"{}", 415, "unsupported-media-type"),
        ({}, b"", 415, "unsupported-media-type"),
        ({"Content-Type": "multipart/form-data"}, b"", 422, "malformed-multipart"),
        (FORM, b"", 422, "malformed-multipart"),
        (FORM, b"junk", 422, "malformed-multipart"),
        (FORM, multipart(FILE, end=b""), 422, "malformed-multipart"),
        (FORM, multipart(FILE, FILE), 422, "one-file"),
        (FORM, multipart(FILE.replace(b'"file"', b'"upload"')), 422, "one-file"),
        (FORM, multipart(FILE, *[b'Content-Disposition: form-data; name="a"\r\n\r\nx'] * 100),
         422, "too-many-parts"),
        (FORM, multipart(b'Content-Disposition: form-data; name="domain"\r\n\r\n\xff'),
         422, "malformed-multipart"),
        (FORM, multipart(b'Content-Disposition: form-data; name="domain"\r\n\r\nx'),
         422, "missing-file"),
    ],
)  # fmt: skip
async def test_bad_bodies_are_refused_and_leave_nothing(
    world: World, headers: dict[str, str], body: bytes, status: int, slug: str
) -> None:
    response = await world.client.post(URL, headers=headers, content=body)
    assert_problem(response, status, slug)
    assert world.objects.objects == {}


async def pieces(total_bytes: int) -> AsyncIterator[bytes]:
    """A multipart body without a declared length."""
    yield b"--b\r\n" + FILE
    for _ in range(total_bytes // 1000):
        yield b"x" * 1000
    yield b"\r\n--b--\r\n"


async def test_large_files_stream_and_too_large_ones_are_refused(world: World) -> None:
    fits = await world.client.post(URL, headers=FORM, content=pieces(MAX_UPLOAD_BYTES - 1000))
    assert fits.status_code == 202
    assert world.objects.largest_piece_bytes <= 1000
    before = dict(world.objects.objects)
    streamed = await world.client.post(URL, headers=FORM, content=pieces(MAX_UPLOAD_BYTES + 1000))
    assert_problem(streamed, 413, "too-large")
    declared = await world.client.post(URL, files={"file": b"x" * (MAX_UPLOAD_BYTES + 2_000_000)})
    assert_problem(declared, 413, "too-large")
    assert world.objects.objects == before


async def test_a_client_that_hangs_up_leaves_nothing(world: World) -> None:
    messages: list[Message] = [
        {"type": "http.request", "body": b"--b\r\n" + FILE, "more_body": True},
        {"type": "http.request", "body": b"x" * 1000, "more_body": True},
        {"type": "http.disconnect"},
    ]
    key = (await world.key())["X-API-Key"]
    headers = [
        (b"host", b"localhost"),
        (b"x-api-key", key.encode()),
        (b"content-type", FORM["Content-Type"].encode()),
    ]
    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": URL, "raw_path": URL.encode(), "query_string": b"",
        "root_path": "", "headers": headers, "client": None, "server": ("localhost", 80),
    }  # fmt: skip
    sent: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await world.app(scope, receive, send)
    assert world.objects.objects == {}
    assert await world.events() == []
    assert (await world.client.get("/live")).status_code == 200


async def test_an_absent_object_store_is_503_and_loses_nothing(world: World) -> None:
    world.objects.away = True
    response = await world.client.post(URL, files={"file": b"x"})
    assert_problem(response, 503, "unavailable")
    assert int(response.headers["retry-after"]) > 0
    world.objects.away = False
    assert (await world.upload(b"x"))["state"] == "uploaded"


async def test_an_absent_database_is_503(world: World) -> None:
    async with world.db.engine.connect() as connection:
        await connection.exec_driver_sql("DROP TABLE documents")
        await connection.commit()
    assert_problem(await world.client.get(URL), 503, "unavailable")


async def test_the_form_is_documented(world: World) -> None:
    schema = (await world.client.get("/openapi.json")).json()
    operation = schema["paths"]["/v1/documents"]["post"]
    assert json.dumps(operation["requestBody"]).count("binary") == 1
    assert {"200", "202", "401", "403", "413", "415", "422", "500", "503"} <= set(
        operation["responses"]
    )


async def test_content_that_could_not_be_parsed_is_tried_again_under_its_new_name(
    world: World,
) -> None:
    first = await world.upload(name="a.bin")
    await world.fail(first["id"])
    again = await world.upload(name="a.txt", priority="urgent")
    assert (again["id"], again["name"], again["generation"]) == (first["id"], "a.txt", 2)
    event = (await world.events())[-1]
    assert (event.name, event.priority) == ("a.txt", "urgent")


async def test_uploading_again_what_failed_later_does_not_parse_it_again(world: World) -> None:
    first = await world.upload()
    await world.parse(first["id"])
    async with world.db.work() as sql:
        of = ("acme", first["id"], 1)
        await documents.fail(sql, *of, stage="chunk", reason="internal-error", detail="")
    again = await world.upload()
    assert (again["state"], again["generation"]) == ("parsed", 1)
    plan = await world.upload(b"other")
    await world.parse(plan["id"])
    async with world.db.work() as sql:
        of = ("acme", plan["id"], 1)
        await documents.fail(sql, *of, stage="chunk", reason="internal-error", detail="")
    assert (await world.upload(b"other", plan='{"child_max_chars": 200}'))["generation"] == 2


async def test_uploading_again_restores_a_lost_original(world: World) -> None:
    first = await world.upload(b"precious")
    world.objects.objects.clear()
    assert (await world.upload(b"precious"))["id"] == first["id"]
    assert world.objects.objects == {f"acme/{first['id']}/original": b"precious"}


async def test_a_waiting_document_overtakes_the_others_when_it_is_uploaded_as_urgent(
    world: World,
) -> None:
    first = await world.upload()
    for _ in range(2):
        assert (await world.upload(priority="urgent"))["generation"] == 1
    async with world.db.reading() as sql:
        row = await documents.load(sql, "acme", first["id"])
    assert row["priority"] == "urgent"
    assert [topic for topic, _ in await emitted(world.db)] == [
        "documents.uploaded.v1",
        "documents.uploaded.v1.urgent",
    ]
