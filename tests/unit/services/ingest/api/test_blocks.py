"""`/v1/documents/{id}/blocks`: what the parser read, in pages."""

from typing import Any

from libs.documents.model import Block, BlockKind, ParsedDocument
from libs.documents.serialise import dump_document
from libs.storage.keys import parsed_key
from tests.unit.services.ingest.api.conftest import World, assert_problem

URL = "/v1/documents"


async def test_blocks_come_in_pages_with_what_the_parser_counted(world: World) -> None:
    body = await world.upload()
    one = f"{URL}/{body['id']}/blocks"
    assert_problem(await world.client.get(one), 409, "conflict")
    await world.parse(body["id"])
    kinds = [BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.TABLE, BlockKind.LIST_ITEM]
    parsed = ParsedDocument(
        text="0123",
        blocks=[Block(kind, n, n + 1, page=n + 1, level=n or None) for n, kind in enumerate(kinds)],
        media_type="text/plain",
        title="T",
        language="zh",
        page_count=4,
        table_count=1,
        warnings=["ocr"],
    )
    files = dump_document(parsed)
    world.objects.objects[parsed_key("acme", body["id"], 1)] = files.document
    seen: list[dict[str, Any]] = []
    after: dict[str, Any] = {}
    while True:
        page = (await world.client.get(one, params={"limit": 2, **after})).json()
        seen += page.pop("items")
        following = page.pop("next")
        assert page == {
            "generation": 1,
            "total": 4,
            "chars": 4,
            "title": "T",
            "language": "zh",
            "pages": 4,
            "tables": 1,
            "warnings": ["ocr"],
        }
        if following is None:
            break
        after = {"after": following}
    assert seen == [
        {"ordinal": n, "kind": k, "start": n, "end": n + 1, "page": n + 1, "level": n or None}
        for n, k in enumerate(kinds)
    ]
    beyond = (await world.client.get(one, params={"after": 9})).json()
    assert (beyond["items"], beyond["next"]) == ([], None)


async def test_blocks_of_a_damaged_parse_are_no_error_of_ours(world: World) -> None:
    body = await world.upload()
    await world.parse(body["id"])  # writes a model without any fields
    response = await world.client.get(f"{URL}/{body['id']}/blocks")
    assert_problem(response, 422, "damaged-parse")
