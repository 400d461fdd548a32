"""`/v1/admin/reindex`: one at a time, seen and ended by administrators."""

from libs.documents.analysis import VERSION
from libs.storage.sql import index_builds
from libs.storage.sql.active_index import ActiveIndex, read_or_make
from libs.storage.sql.workers import Worker, beat
from tests.unit.services.gateway.conftest import Stage

PATH = "/v1/admin/reindex"


async def test_one_is_started_seen_and_ended(stage: Stage) -> None:
    await read_or_make(stage.gateway.db, ActiveIndex("m", "v", "k"), analyser=VERSION)
    async with await stage.admin() as client:
        assert (await client.get(PATH)).json()["state"] == "none"
        assert (await client.delete(PATH)).status_code == 404
        assert (await client.post(PATH, json={"rechnk": True})).status_code == 422
        started = await client.post(PATH, json={"rechunk": True})
        assert started.status_code == 202
        assert (started.json()["state"], started.json()["rechunk"]) == ("building", True)
        again = await client.post(PATH, json={})
        assert (again.status_code, "--cancel" in again.json()["detail"]) == (409, True)
        seen = (await client.get(PATH)).json()
        assert (seen["id"], seen["done"], seen["total"]) == (started.json()["id"], 0, 0)
        for _ in range(2):
            assert (await client.delete(PATH)).json()["state"] == "cancelling"
        assert (await client.post(PATH, json={})).status_code == 409


async def test_before_there_is_any_index_there_is_none_to_cancel(stage: Stage) -> None:
    async with await stage.admin() as client:
        assert (await client.delete(PATH)).status_code == 404
        assert (await client.get(PATH)).json()["state"] == "none"


async def test_why_one_is_needed_is_said(stage: Stage) -> None:
    await read_or_make(stage.gateway.db, ActiveIndex("m", "v", "k"), analyser=VERSION)
    worker = Worker("w", "indexer", "host", 1, 1)
    async with stage.gateway.db.work() as sql:
        await beat(sql, worker, ["index of m: run `sluice reindex`", "kafka"])
    async with await stage.admin() as client:
        assert (await client.get(PATH)).json()["needed"] == ["index of m: run `sluice reindex`"]
    async with stage.gateway.db.work() as sql:
        await beat(sql, worker, [])
        row = await index_builds.start(sql, rechunk=False)
        await index_builds.take_up(sql, row["id"], ActiveIndex("m", "v2", "k2"), analyser=0)
        assert await index_builds.switch(sql, row["id"])
    async with await stage.admin() as client:
        (why,) = (await client.get(PATH)).json()["needed"]
    assert "older version: run `sluice reindex`" in why


async def test_a_first_set_that_an_older_analysis_made_is_to_be_built_anew(stage: Stage) -> None:
    await read_or_make(stage.gateway.db, ActiveIndex("m", "v", "k"), analyser=VERSION - 1)
    async with await stage.admin() as client:
        (why,) = (await client.get(PATH)).json()["needed"]
        assert "older version: run `sluice reindex`" in why
    async with stage.gateway.db.work() as sql:
        row = await index_builds.start(sql, rechunk=False)
        await index_builds.take_up(sql, row["id"], ActiveIndex("m", "v2", "k2"), analyser=VERSION)
        assert await index_builds.switch(sql, row["id"])
    async with await stage.admin() as client:
        assert (await client.get(PATH)).json()["needed"] == []
