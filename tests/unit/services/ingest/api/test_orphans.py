"""The sweep removes what nothing refers to, and nothing else."""

from collections.abc import AsyncIterator

from libs.kernel import now_us
from libs.storage.sql import documents
from services.ingest.api.orphans import sweep
from tests.unit.services.ingest.api.conftest import World, assert_problem

FUTURE = now_us() + 3600 * 1_000_000


async def test_only_old_unreferenced_objects_go(world: World) -> None:
    kept = await world.upload(b"kept")
    await world.index(kept["id"])
    dead = await world.upload(b"dead")
    async with world.db.work() as sql:
        await documents.tombstone(sql, "acme", dead["id"])
    before = dict(world.objects.objects)
    orphan = "0190" + "0" * 28
    foreign = kept["id"]
    world.objects.objects |= {
        f"acme/{orphan}/original": b"crashed upload",
        f"other/{foreign}/original": b"another tenant's id does not keep it",
        f"acme/{kept['id']}/7/text.txt": b"overtaken",
        "acme/notes/readme": b"not ours",
    }
    assert await sweep(world.db, world.objects, before_us=FUTURE) == 3
    assert world.objects.objects == {**before, "acme/notes/readme": b"not ours"}


async def test_what_may_still_be_written_stays(world: World) -> None:
    body = await world.upload()
    world.objects.objects |= {
        f"acme/{body['id']}/9/text.txt": b"",
        f"acme/{body['id'][:-1]}0/original": b"upload in progress",
    }
    before = dict(world.objects.objects)
    assert await sweep(world.db, world.objects, before_us=now_us() - 60_000_000) == 0
    assert world.objects.objects == before


async def test_an_upload_held_up_past_the_sweep_is_refused_not_left_without_its_file(
    world: World,
) -> None:
    """As when its process is frozen between its last byte and its commit."""

    async def body() -> AsyncIterator[bytes]:
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
        yield head + b"hello\r\n--b\r\n"
        yield b'Content-Disposition: form-data; name="domain"\r\n\r\n'
        assert await sweep(world.db, world.objects, before_us=FUTURE) == 1
        yield b"law\r\n--b--\r\n"

    held_up = await world.client.post(
        "/v1/documents",
        content=body(),
        headers={"Content-Type": "multipart/form-data; boundary=b"},
    )
    assert_problem(held_up, 503, "upload-held-up")
    assert world.objects.objects == {}
    assert (await world.client.get("/v1/documents")).json()["items"] == []


async def test_an_upload_that_was_committed_first_keeps_its_file(world: World) -> None:
    kept = await world.upload()
    assert await sweep(world.db, world.objects, before_us=FUTURE) == 0
    assert f"acme/{kept['id']}/original" in world.objects.objects
