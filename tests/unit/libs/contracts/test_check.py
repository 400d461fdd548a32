"""Every rule of `make schemas` holds for the repository and fails on a planted bad case."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from libs.contracts.check import Sources, known_services, problems
from libs.contracts.generate import EVENTS_PY, fingerprint, generated, with_new_ids
from libs.contracts.topics import SCHEMAS_DIR

SERVICES = frozenset({"ingest", "parser", "indexer", "executor", "orchestrator", "gateway"}) | {
    "chunker",
    "memory_compactor",
}
UPLOADED = "documents.uploaded.v1"
PLANNED = "chat.planned.v1"

Json = dict[str, Any]


class Planted:
    """A copy of the repository's schemas to spoil."""

    def __init__(self, root: Path) -> None:
        self.schemas = root / "schemas"
        self.events_py = root / "events.py"
        shutil.copytree(SCHEMAS_DIR, self.schemas)
        shutil.copy(EVENTS_PY, self.events_py)

    def found(self) -> str:
        return "\n".join(problems(Sources(self.schemas, self.events_py, SERVICES)))

    def topic(self, topic: str, /, **changes: Any) -> None:
        path = self.schemas / "topics" / f"{topic}.yaml"
        raw = yaml.safe_load(path.read_text()) | changes
        path.write_text(yaml.safe_dump({k: v for k, v in raw.items() if v is not None}))

    def schema(self, topic: str, version: str = "001") -> Json:
        path = self.schemas / "avro" / topic / f"{version}.avsc"
        schema: Json = json.loads(path.read_text())
        return schema

    def write(self, topic: str, version: str, schema: Json) -> None:
        """A schema file, with an id that agrees with it."""
        (self.schemas / "avro" / topic / f"{version}.avsc").write_text(json.dumps(schema))
        ids = with_new_ids(self.schemas)
        ids[f"{topic}/{version}"]["sha256"] = fingerprint(schema)
        self.ids(ids)

    def ids(self, ids: Json) -> None:
        (self.schemas / "ids.json").write_text(json.dumps(ids))

    def example(self, topic: str, **changes: Any) -> None:
        path = self.schemas / "examples" / topic / "minimal.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    def regenerate(self) -> None:
        for path, text in generated(self.schemas, self.events_py).items():
            path.write_text(text)


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


def test_the_repositorys_schemas_pass() -> None:
    assert problems(Sources(SCHEMAS_DIR, EVENTS_PY, known_services())) == []


def test_services_are_known_from_the_tree() -> None:
    assert {"gateway", "ingest", "parser", "memory_compactor"} <= known_services()
    assert "services" not in known_services()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"nmae": "x"}, "nmae is not a field of a topic file"),
        ({"key": None}, "key is missing"),
        ({"partitions": "6"}, "partitions must be int"),
        ({"partitions": 0}, "partitions must be at least 1"),
        ({"retention_hours": 0}, "retention_hours must be at least 1"),
        ({"name": "documents.other.v1"}, "name is documents.other.v1, the file's is"),
        ({"event": "document_uploaded"}, "event document_uploaded is not PascalCase"),
        ({"event": "DocumentParsed"}, "event DocumentParsed is that of documents.parsed.v1"),
        ({"compatibility": "NONE"}, "compatibility is NONE"),
        ({"description": " "}, "description is empty"),
        ({"producers": []}, "producers is empty"),
        ({"producers": ["ingestt"]}, "producer ingestt is no service"),
        ({"consumers": ["praser"]}, "consumer group praser is no service's"),
        ({"consumers": ["parser", "parser"]}, "consumers names something twice"),
        ({"consumers": [1]}, "consumers must hold strings"),
        ({"lanes": ["very_urgent"]}, "lane 'very_urgent' is not a lower-case word"),
    ],
)
def test_a_bad_topic_file_is_named(planted: Planted, changes: Json, problem: str) -> None:
    planted.topic(UPLOADED, **changes)
    assert f"topics/{UPLOADED}.yaml: {problem}" in planted.found()


def test_a_group_for_a_second_purpose_is_its_services(planted: Planted) -> None:
    planted.topic(UPLOADED, consumers=["parser", "parser.backfill"])
    planted.regenerate()
    assert planted.found() == ""


def test_a_topic_name_with_an_underscore_is_refused(planted: Planted) -> None:
    for folder in ("avro", "examples"):
        (planted.schemas / folder / UPLOADED).rename(planted.schemas / folder / "documents.up_l.v1")
    path = planted.schemas / "topics" / f"{UPLOADED}.yaml"
    path.rename(path.with_name("documents.up_l.v1.yaml"))
    planted.topic("documents.up_l.v1", name="documents.up_l.v1")
    assert "documents.up_l.v1 is not of the form domain.fact.v1" in planted.found()


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (f"avro/{UPLOADED}/001.avsc", f"{UPLOADED}: no schema in avro/"),
        (f"examples/{UPLOADED}/minimal.json", f"{UPLOADED}: no example in examples/"),
        (f"topics/{UPLOADED}.yaml", f"avro/{UPLOADED}/001.avsc: no topic file"),
    ],
)
def test_a_missing_partner_is_named(planted: Planted, path: str, problem: str) -> None:
    (planted.schemas / path).unlink()
    assert problem in planted.found()


@pytest.mark.parametrize("path", ["notes.md", f"avro/{UPLOADED}/1.avsc", "topics/a.yml"])
def test_a_file_that_belongs_to_nothing_is_named(planted: Planted, path: str) -> None:
    (planted.schemas / path).write_text("")
    assert f"{path}: not a file of this folder" in planted.found()


def drop_doc(schema: Json) -> None:
    del schema["doc"]


def rename(schema: Json) -> None:
    schema["name"] = "DocumentSent"


def other_namespace(schema: Json) -> None:
    schema["namespace"] = "other"


def unknown_type(schema: Json) -> None:
    schema["fields"][0]["type"] = "text"


def camel_case(schema: Json) -> None:
    schema["fields"][3]["name"] = "fileName"


def default_first(schema: Json) -> None:
    schema["fields"][0]["default"] = ""


def key_is_a_number(schema: Json) -> None:
    schema["fields"][1]["type"] = "long"


def wide_union(schema: Json) -> None:
    schema["fields"][3]["type"] = ["string", "long"]


def stranger_record(schema: Json) -> None:
    schema["fields"][3]["type"] = {"type": "record", "name": "Nobody", "fields": []}


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (drop_doc, "the record has no doc"),
        (rename, "the record is DocumentSent, the topic's event is DocumentUploaded"),
        (other_namespace, "the namespace must be sluice.documents"),
        (unknown_type, "not valid Avro"),
        (camel_case, "field fileName is not snake_case"),
        (default_first, "field document_id has no default but follows tenant"),
        (key_is_a_number, "the key document_id is no string field"),
        (wide_union, "field name: only unions of null and one type"),
        (stranger_record, "plan has no class Nobody"),
    ],
)
def test_a_bad_schema_is_named(
    planted: Planted, spoil: Callable[[Json], None], problem: str
) -> None:
    schema = planted.schema(UPLOADED)
    spoil(schema)
    planted.write(UPLOADED, "001", schema)
    assert f"{UPLOADED}/001: " in planted.found()
    assert problem in planted.found()


def test_a_nested_type_has_what_the_hand_written_one_has(planted: Planted) -> None:
    schema = planted.schema(PLANNED)
    plan = schema["fields"][-1]["type"]
    plan["fields"].append({"name": "mood", "type": "string", "default": ""})
    plan["fields"][0]["type"]["symbols"].append("SHRUG")
    planted.write(PLANNED, "001", schema)
    assert "ConversationExecutionPlan in plan.py lacks mood" in planted.found()
    assert "ExecutionMode in plan.py lacks SHRUG" in planted.found()


def test_a_version_may_not_be_left_out(planted: Planted) -> None:
    planted.write(UPLOADED, "003", planted.schema(UPLOADED))
    assert f"{UPLOADED}: version 002 is missing" in planted.found()


NEW_FIELD = {"name": "source", "type": "string"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda fields: fields.insert(0, NEW_FIELD), "002 cannot read what 001 wrote"),
        (lambda fields: fields.pop(0), "001 cannot read what 002 wrote"),
        (lambda fields: fields[2].update(type="double"), "001 cannot read what 002 wrote"),
        (lambda fields: fields[2].update(type="string"), "002 cannot read what 001 wrote"),
    ],
    ids=["added", "dropped", "promoted", "retyped"],
)
def test_an_incompatible_version_is_named(
    planted: Planted, change: Callable[[list[Json]], None], problem: str
) -> None:
    schema = planted.schema(UPLOADED)
    change(schema["fields"])
    planted.write(UPLOADED, "002", schema)
    assert f"{UPLOADED}: {problem}" in planted.found()


def test_an_enum_may_not_grow(planted: Planted) -> None:
    schema = planted.schema(PLANNED)
    mode = schema["fields"][-1]["type"]["fields"][0]["type"]
    first = json.loads(json.dumps(schema))
    mode["symbols"].remove("REACT_AGENT")
    planted.write(PLANNED, "001", schema)
    planted.write(PLANNED, "002", first)
    assert f"{PLANNED}: 001 cannot read what 002 wrote" in planted.found()


def test_a_version_is_held_against_all_earlier_ones_not_only_the_last(planted: Planted) -> None:
    first = planted.schema(UPLOADED)
    second, third = json.loads(json.dumps(first)), json.loads(json.dumps(first))
    second["fields"].pop()  # priority, which has a default
    third["fields"][-1] = {"name": "priority", "type": "long", "default": 0}
    planted.write(UPLOADED, "002", second)
    planted.write(UPLOADED, "003", third)
    found = planted.found()
    assert "003 cannot read what 001 wrote" in found
    assert "003 cannot read what 002 wrote" not in found


def test_a_version_that_only_adds_a_default_passes_once_generated(planted: Planted) -> None:
    schema = planted.schema(UPLOADED)
    older = schema | {"fields": schema["fields"][:-1]}
    planted.write(UPLOADED, "001", older)
    planted.write(UPLOADED, "002", schema)
    assert planted.found() == ""


def test_an_edited_schema_is_found_out(planted: Planted) -> None:
    schema = planted.schema(UPLOADED) | {"doc": "Another meaning."}
    (planted.schemas / "avro" / UPLOADED / "001.avsc").write_text(json.dumps(schema))
    assert f"{UPLOADED}/001 was edited" in planted.found()


def test_ids_count_on_and_never_change_or_go(planted: Planted) -> None:
    ids = json.loads((planted.schemas / "ids.json").read_text())
    planted.ids({key: entry | {"id": 1} for key, entry in ids.items()})
    assert "has the id 1, in its place belongs 2" in planted.found()
    planted.ids(dict(list(ids.items())[1:]))
    assert f"{UPLOADED}/001 has no id" in planted.found()
    planted.ids(ids | {f"{UPLOADED}/002": {"id": 14, "sha256": ""}})
    assert f"{UPLOADED}/002 has no file" in planted.found()


@pytest.mark.parametrize("name", ["events.py", "asyncapi.yaml"])
def test_a_generated_file_that_was_edited_is_named(planted: Planted, name: str) -> None:
    path = planted.events_py if name == "events.py" else planted.schemas / name
    path.write_text(path.read_text() + "\n")
    assert f"{name} is not up to date" in planted.found()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"size_bytes": "5"}, "does not fit version 001"),
        ({"size": 5}, "has fields that the schema has not"),
    ],
)
def test_an_example_that_is_none_is_named(planted: Planted, changes: Json, problem: str) -> None:
    planted.example(UPLOADED, **changes)
    planted.regenerate()
    assert f"examples/{UPLOADED}/minimal.json: {problem}" in planted.found()


def test_an_example_that_the_event_refuses_is_named(planted: Planted) -> None:
    plan = json.loads((planted.schemas / "examples" / PLANNED / "minimal.json").read_text())["plan"]
    planted.example(PLANNED, plan=plan | {"clarify_question": "Which?"})
    planted.regenerate()
    assert "written in version 001 it is no event: ValueError" in planted.found()


def test_an_example_that_an_older_version_could_not_carry_is_named(planted: Planted) -> None:
    schema = planted.schema(PLANNED)
    older = json.loads(json.dumps(schema))
    fields = older["fields"][-1]["type"]["fields"]
    fields[:] = [field for field in fields if field["name"] != "clarify_question"]
    planted.write(PLANNED, "001", older)
    planted.write(PLANNED, "002", schema)
    plan = json.loads((planted.schemas / "examples" / PLANNED / "minimal.json").read_text())["plan"]
    asks = {"execution_mode": "CLARIFY", "clarify_question": "Which?"}
    planted.example(PLANNED, plan=plan | asks)
    planted.regenerate()
    assert "written in version 001 it is no event" in planted.found()
