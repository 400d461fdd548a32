"""The codec with ids that a registry gives."""

from typing import Any

import pytest

from libs.contracts import DocumentDeleted, DocumentUploaded
from libs.contracts.codec import Codec, UnknownSchemaError
from libs.contracts.store import SchemaStore
from libs.kernel import PermanentError, TransientError

UPLOADED = DocumentUploaded("acme", "d1", 1, "a.txt", "text/plain", "acme/d1/original", 5)
TOPIC = "documents.uploaded.v1"


def numbered_from(first: int) -> Codec:
    store, codec = SchemaStore(), Codec(SchemaStore())
    codec.use_ids(dict(enumerate(store.newest_of_all(), start=first)))
    return codec


async def never(schema_id: int) -> Any:
    raise UnknownSchemaError(schema_id, "is the id of no schema")


def test_until_ids_have_come_nothing_is_encoded_with_ids_of_our_own() -> None:
    codec = Codec(SchemaStore())
    value = codec.encode(UPLOADED)
    codec.ids_come_later(never)
    with pytest.raises(TransientError) as refused:
        codec.encode(UPLOADED)
    assert refused.value.missing == "schema-registry"
    with pytest.raises(TransientError):
        codec.decode(value)
    assert codec.decode(value, f"{TOPIC}/001") == UPLOADED


def test_of_several_ids_of_a_schema_one_is_written_and_all_are_read() -> None:
    codec, version = Codec(SchemaStore()), SchemaStore().newest(TOPIC)
    codec.use_ids({70: version, 90: version})
    value = codec.encode(UPLOADED)
    assert value[:5] == bytes([0, 0, 0, 0, 70])
    assert codec.decode(bytes([0, 0, 0, 0, 90]) + value[5:]) == UPLOADED


def test_the_name_in_the_header_counts_more_than_an_id_that_means_another_schema_now() -> None:
    before, after = numbered_from(1), numbered_from(2)
    value, name = before.encode(UPLOADED), SchemaStore().newest(TOPIC).name
    with pytest.raises(PermanentError):
        assert after.decode(value) == UPLOADED
    assert after.decode(value, name) == UPLOADED
    assert before.decode(value, "documents.uploaded.v1/999") == UPLOADED  # a later version's name


async def test_a_schema_that_nobody_told_us_is_asked_for_once() -> None:
    asked: list[int] = []
    codec = numbered_from(1)
    theirs = {**SchemaStore().newest(TOPIC).schema, "doc": "the same, told by others"}

    async def ask(schema_id: int) -> Any:
        asked.append(schema_id)
        return theirs

    codec.ask = ask
    value = bytes([0, 0, 0, 3, 232]) + codec.encode(UPLOADED)[5:]
    assert [await codec.read(value) for _ in range(3)] == [UPLOADED] * 3
    assert asked == [1000]


@pytest.mark.parametrize("theirs", [{"type": "record", "name": "x.Order"}, "string", ["null"]])
async def test_a_schema_of_no_event_of_ours_is_a_lasting_error(theirs: Any) -> None:
    codec = numbered_from(1)

    async def ask(schema_id: int) -> Any:
        return theirs

    codec.ask = ask
    with pytest.raises(UnknownSchemaError, match="1000"):
        await codec.read(bytes([0, 0, 0, 3, 232]) + b"\x02a")


async def test_while_the_registry_is_away_what_is_known_is_read_and_the_rest_may_come() -> None:
    codec = numbered_from(1)

    async def ask(schema_id: int) -> Any:
        raise TransientError("away", missing="schema-registry")

    codec.ask = ask
    deleted = DocumentDeleted("acme", "d1")
    assert await codec.read(codec.encode(deleted)) == deleted
    with pytest.raises(TransientError):
        await codec.read(bytes([0, 0, 0, 3, 232]) + b"\x02a")
