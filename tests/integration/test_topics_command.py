"""`sluice topics apply` on the embedded broker."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from libs.contracts import TopicSpec, topic_specs
from libs.eventbus import KafkaConnection
from libs.eventbus.admin import apply_topics
from libs.storage.sql import open_database
from tests.broker import running_broker
from tests.ports import free_port

pytestmark = pytest.mark.integration


async def sluice(home: Path, bootstrap: str, *arguments: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.cli", *arguments),
        env=os.environ | {"SLUICE_HOME": str(home), "KAFKA_BOOTSTRAP": bootstrap},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A data folder whose SQL is there."""
    db = open_database(f"sqlite+aiosqlite:///{tmp_path / 'sluice.db'}")
    await db.create_schema()
    await db.close()
    return tmp_path


async def test_every_topic_and_one_epoch_are_there_after_it_and_after_a_repeat(home: Path) -> None:
    async with running_broker() as bootstrap:
        code, first, err = await sluice(home, bootstrap, "topics", "apply", "--json")
        assert (code, err) == (0, "")
        assert json.loads(first)["topics"] == len(topic_specs())
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            found = {t["topic"]: len(t["partitions"]) for t in await admin.describe_topics()}
        finally:
            await admin.close()
        assert found == {spec.name: spec.partitions for spec in topic_specs()}
        assert (await sluice(home, bootstrap, "topics", "apply", "--json"))[:2] == (0, first)


async def test_a_topic_of_another_shape_is_named_and_ends_it_with_1(home: Path) -> None:
    async with running_broker() as bootstrap:
        await apply_topics(
            KafkaConnection(bootstrap), [TopicSpec("documents.parsed.v1", 2, 1000)], timeout_s=20
        )
        code, _, err = await sluice(home, bootstrap, "topics", "apply")
    assert code == 1
    assert "documents.parsed.v1 has 2 partitions, wanted 6" in " ".join(err.split())


async def test_a_broker_that_is_away_ends_it_with_3(home: Path) -> None:
    away = f"127.0.0.1:{free_port()}"
    code, _, err = await sluice(home, away, "topics", "apply", "--timeout", "1")
    assert (code, away in err) == (3, True)
