"""A process is killed between sending its outbox rows and noting that they were sent."""

import asyncio
import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select, update

from libs.contracts import DocumentUploaded
from libs.eventbus import KafkaConnection, Subscriptions
from libs.eventbus.backlog import KafkaBacklogs
from libs.eventbus.preparation import prepare_broker
from libs.service.process import open_platform
from libs.service.settings import PlatformSettings
from libs.storage.sql import open_database
from libs.storage.sql.tables import leases, outbox
from tests.integration.eventbus.member_process import take
from tests.servers.brokers import AnyBroker, is_embedded
from tests.waiting import until

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
TOPIC = "documents.uploaded.v1"
KEYS = [f"d{n}" for n in range(5)]


async def test_its_events_are_sent_again_and_have_their_effect_once(
    tmp_path: Path, broker: AnyBroker
) -> None:
    bootstrap = broker.bootstrap
    settings = PlatformSettings(
        home=tmp_path, kafka_bootstrap=bootstrap, kafka_session_timeout_s=2.0
    )
    db = open_database(settings.sql_url)
    await db.create_schema()
    await prepare_broker(KafkaConnection(bootstrap), db, embedded=is_embedded(broker))
    sender = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.relaying_process", *KEYS),
        cwd=ROOT,
        env=os.environ | {"SLUICE_HOME": str(tmp_path), "KAFKA_BOOTSTRAP": bootstrap},
    )
    assert await asyncio.wait_for(sender.wait(), 60) == -signal.SIGKILL
    assert await records_on(bootstrap) == len(KEYS)
    async with db.work() as sql:
        unsent = outbox.c.sent_at.is_(None)
        count = await sql.scalar(select(func.count()).select_from(outbox).where(unsent))
        assert count == len(KEYS)
        await sql.execute(update(outbox).values(not_before=0))  # the dead one's claim is over
        undone = [{"name": key, "holder": "uploaded", "expires_at": 0} for key in KEYS]
        await sql.execute(insert(leases), undone)

    handled: Counter[str] = Counter()
    effects: Counter[str] = Counter()
    async with open_platform(settings, "parser") as platform:

        async def handle(event: DocumentUploaded) -> None:
            handled[event.document_id] += 1
            effects[event.document_id] += await take(platform.db, event.document_id, "parser")

        subscriptions = Subscriptions().on(DocumentUploaded, handle)
        consuming = asyncio.create_task(platform.consume(subscriptions, group_id="parser"))
        await until(lambda: handled == dict.fromkeys(KEYS, 2), within_s=60)

        async def all_are_marked() -> bool:
            async with platform.db.reading() as sql:
                return not await sql.rows(select(outbox.c.id).where(unsent))

        await until(all_are_marked)
        platform.stopping.set()
        await consuming
    assert effects == dict.fromkeys(KEYS, 1)
    assert await records_on(bootstrap) == 2 * len(KEYS)
    await db.close()


async def records_on(bootstrap: str) -> int:
    places = [(TOPIC, partition) for partition in range(6)]
    found = await KafkaBacklogs(KafkaConnection(bootstrap)).of_groups({"nobody": places})
    return sum(backlog.end for backlog in found["nobody"].values())
