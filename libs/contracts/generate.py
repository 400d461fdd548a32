"""Writes what follows from the schemas: ids of new versions, `events.py`, `asyncapi.yaml`.

To change an event, copy its newest `schemas/avro/<topic>/NNN.avsc` to the next number, add or drop
fields that have defaults, and run `python -m libs.contracts.generate`. A new topic is a topic file,
a `001.avsc` and an example. `make schemas` says what is missing.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from libs.contracts.asyncapi import asyncapi_source
from libs.contracts.python_source import events_source
from libs.contracts.store import SchemaStore
from libs.contracts.topics import SCHEMAS_DIR

EVENTS_PY = Path(__file__).parent / "events.py"


def fingerprint(schema: Any) -> str:
    """SHA-256 of a schema file's content; layout does not count, docs and defaults do."""
    text = json.dumps(schema, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def with_new_ids(schemas: Path) -> dict[str, dict[str, Any]]:
    """The id file's content with an entry for every version that has none; none is changed."""
    path = schemas / "ids.json"
    ids: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    next_id = max((entry["id"] for entry in ids.values()), default=0) + 1
    for file in sorted((schemas / "avro").glob("*/*.avsc")):
        key = f"{file.parent.name}/{file.stem}"
        if key not in ids:
            ids[key] = {"id": next_id, "sha256": fingerprint(json.loads(file.read_text()))}
            next_id += 1
    return ids


def generated(schemas: Path, events_py: Path) -> dict[Path, str]:
    """Every generated file's path and the content it should have."""
    store = SchemaStore(schemas)
    return {
        events_py: events_source(newest.schema for newest in store.newest_of_all()),
        schemas / "asyncapi.yaml": asyncapi_source(schemas),
    }


def main() -> None:
    ids = json.dumps(with_new_ids(SCHEMAS_DIR), indent=2)
    (SCHEMAS_DIR / "ids.json").write_text(f"{ids}\n")
    for path, text in generated(SCHEMAS_DIR, EVENTS_PY).items():
        path.write_text(text)


if __name__ == "__main__":
    main()
