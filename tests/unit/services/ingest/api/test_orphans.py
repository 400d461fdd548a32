"""The sweep removes what nothing refers to, and nothing else."""

from libs.kernel import now_us
from libs.storage.sql import documents
from services.ingest.api.orphans import sweep
from tests.unit.services.ingest.api.conftest import World

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
