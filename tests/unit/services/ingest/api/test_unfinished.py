"""What the reconciler is told about documents: the event each of them waits for."""

from libs.contracts import DocumentChunked, DocumentDeleted, DocumentParsed, DocumentUploaded
from libs.service.unfinished import DELETIONS, PIPELINE
from libs.storage.sql import documents
from tests.unit.services.ingest.api.conftest import World


async def test_every_unfinished_document_waits_for_the_event_of_its_state(world: World) -> None:
    ids = [(await world.upload(f"{n}".encode(), priority="urgent"))["id"] for n in range(6)]
    uploaded, parsed, chunked, indexed, failed, deleted = ids
    for document_id in (parsed, chunked):
        await world.parse(document_id)
    await world.index(indexed)
    await world.fail(failed)
    async with world.db.work() as sql:
        of = ("acme", chunked, 1)
        counts = {"parents": 1, "chunks": 2}
        await documents.advance(sql, *of, expect={"parsed"}, to="chunked", counts=counts)
        await documents.tombstone(sql, "acme", deleted)
    async with world.db.reading() as sql:
        first = list(await PIPELINE.unfinished(sql, "", 2))
        works = first + list(await PIPELINE.unfinished(sql, first[-1][0], 2))
        deletions = await DELETIONS.unfinished(sql, "", 9)
    assert [(id_, type(work.event), work.group_id, work.lane) for id_, work in works] == [
        (uploaded, DocumentUploaded, "parser", "urgent"),
        (parsed, DocumentParsed, "chunker", "urgent"),
        (chunked, DocumentChunked, "indexer", "urgent"),
    ]
    assert works[2][1].event == DocumentChunked("acme", chunked, 1, 1, 2, "urgent")
    assert [(id_, work.event, work.group_id, work.lane) for id_, work in deletions] == [
        (deleted, DocumentDeleted("acme", deleted), "indexer", "")
    ]
