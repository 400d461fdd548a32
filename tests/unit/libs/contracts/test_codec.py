import json
from pathlib import Path
from typing import Any

import pytest

from libs.contracts import (
    ConversationExecutionPlan,
    DocumentIndexed,
    DocumentUploaded,
    ExecutionMode,
    TurnPlanned,
    decode,
    encode,
)
from libs.contracts.codec import Codec
from libs.contracts.store import SchemaStore
from libs.contracts.topics import SCHEMAS_DIR
from libs.kernel import PermanentError

UPLOADED = DocumentUploaded("acme", "d1", 1, "a.txt", "text/plain", "acme/d1/original", 5)
INDEXED = DocumentIndexed("acme", "d1", 2, 40)
PLAN = ConversationExecutionPlan(
    ExecutionMode.CLARIFY, "Which month?", ["a", "b"], ["hr"], "Which month do you mean?"
)


def copy_of_schemas(to: Path, topic: str, versions: list[dict[str, Any]]) -> SchemaStore:
    """A schema folder with one topic in these versions, ids counting from 1."""
    (to / "topics").mkdir()
    name = f"{topic}.yaml"
    (to / "topics" / name).write_text((SCHEMAS_DIR / "topics" / name).read_text())
    (to / "avro" / topic).mkdir(parents=True)
    ids = {}
    for number, schema in enumerate(versions, start=1):
        (to / "avro" / topic / f"{number:03}.avsc").write_text(json.dumps(schema))
        ids[f"{topic}/{number:03}"] = {"id": number}
    (to / "ids.json").write_text(json.dumps(ids))
    return SchemaStore(to)


def committed(topic: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS_DIR / "avro" / topic / "001.avsc").read_text())
    return schema


def test_framing_is_confluents_and_the_body_is_avros() -> None:
    value = encode(INDEXED)
    assert value[:5] == b"\x00\x00\x00\x00\x04"
    # Avro: strings are a zigzag length and the bytes, longs are zigzag numbers.
    assert value[5:] == b"\x08acme\x04d1\x04\x50"


def test_nested_records_and_enums_come_back_as_their_own_types() -> None:
    event = TurnPlanned("acme", "c1", "t1", 3, PLAN)
    read = decode(encode(event))
    assert read == event
    assert isinstance(read, TurnPlanned)
    assert read.plan.execution_mode is ExecutionMode.CLARIFY


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "undecodable"),
        (b"\x00\x00\x00", "undecodable"),
        (b'{"tenant": "acme"}', "undecodable"),
        (b"\x00\x00\x00\xff\xffabc", "unknown-schema"),
        (encode(INDEXED)[:-1], "undecodable"),
        (encode(INDEXED) + b"\x00", "undecodable"),
        (encode(INDEXED)[:5], "undecodable"),
        (encode(INDEXED)[:5] + b"\x08\xff\xfe\xfd\xfc\x02a\x02\x02", "undecodable"),
    ],
    ids=["empty", "short", "json", "unknown", "cut", "longer", "no-body", "not-utf8"],
)
def test_what_is_no_event_is_a_permanent_error_with_its_reason(value: bytes, reason: str) -> None:
    with pytest.raises(PermanentError) as caught:
        decode(value)
    assert caught.value.reason == reason


def test_a_plan_that_no_executor_could_run_is_undecodable() -> None:
    codec = Codec(SchemaStore())
    good = codec.encode(TurnPlanned("acme", "c1", "t1", 3, PLAN))
    mode = good.index(b"\x18Which month?") - 1
    with pytest.raises(PermanentError, match="clarify_question belongs to CLARIFY"):
        codec.decode(good[:mode] + b"\x02" + good[mode + 1 :])


def test_an_older_version_is_read_with_the_new_fields_default(tmp_path: Path) -> None:
    newest = committed("documents.uploaded.v1")
    first = newest | {"fields": [f for f in newest["fields"] if f["name"] != "priority"]}
    (tmp_path / "old").mkdir()
    (tmp_path / "both").mkdir()
    old = Codec(copy_of_schemas(tmp_path / "old", "documents.uploaded.v1", [first]))
    both = Codec(copy_of_schemas(tmp_path / "both", "documents.uploaded.v1", [first, newest]))
    assert both.decode(old.encode(UPLOADED)) == UPLOADED
    assert both.encode(UPLOADED)[:5] == b"\x00\x00\x00\x00\x02"


def test_a_newer_version_in_which_fields_moved_is_read_by_name(tmp_path: Path) -> None:
    newest = committed("documents.indexed.v1")
    moved = newest | {"fields": newest["fields"][::-1]}
    (tmp_path / "moved").mkdir()
    (tmp_path / "both").mkdir()
    writer = Codec(copy_of_schemas(tmp_path / "moved", "documents.indexed.v1", [moved]))
    reader = Codec(copy_of_schemas(tmp_path / "both", "documents.indexed.v1", [moved, newest]))
    assert reader.decode(writer.encode(INDEXED)) == INDEXED


def test_defaults_of_an_older_event_are_not_shared_between_events(tmp_path: Path) -> None:
    newest = committed("chat.planned.v1")
    first = json.loads(json.dumps(newest))
    plan = first["fields"][-1]["type"]
    plan["fields"] = [f for f in plan["fields"] if f["name"] != "knowledge_domains"]
    (tmp_path / "old").mkdir()
    (tmp_path / "both").mkdir()
    old = Codec(copy_of_schemas(tmp_path / "old", "chat.planned.v1", [first]))
    both = Codec(copy_of_schemas(tmp_path / "both", "chat.planned.v1", [first, newest]))
    value = old.encode(TurnPlanned("acme", "c1", "t1", 3, PLAN))
    one, other = both.decode(value), both.decode(value)
    assert isinstance(one, TurnPlanned)
    assert isinstance(other, TurnPlanned)
    one.plan.knowledge_domains.append("hr")
    assert other.plan.knowledge_domains == []
