"""`make schemas`: says what is wrong in `schemas/`, offline. Exit code 1 when something is.

Each stage presupposes the ones before it, so the first that finds something ends the check.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from libs.contracts.check_examples import examples_read
from libs.contracts.check_files import nothing_is_orphaned, topic_files_are_valid
from libs.contracts.check_schemas import ids_are_append_only, schemas_are_valid, versions_agree
from libs.contracts.generate import EVENTS_PY, generated
from libs.contracts.topics import SCHEMAS_DIR

SERVICES_DIR = SCHEMAS_DIR.parent / "services"


@dataclass(frozen=True, slots=True)
class Sources:
    """What is checked: a `schemas` folder, the generated module and the known services."""

    schemas: Path
    events_py: Path
    services: frozenset[str]


def known_services() -> frozenset[str]:
    """The services' names: every folder below `services` that is a Python package."""
    return frozenset(path.parent.name for path in SERVICES_DIR.glob("**/__init__.py")) - {
        "services"
    }


def generated_files_are_up_to_date(sources: Sources) -> Iterable[str]:
    """`events.py` and `asyncapi.yaml` are what the generator writes."""
    for path, text in generated(sources.schemas, sources.events_py).items():
        if not path.exists() or path.read_text() != text:
            yield f"{path.name} is not up to date: run python -m libs.contracts.generate"


STAGES: tuple[tuple[Callable[[Sources], Iterable[str]], ...], ...] = (
    (
        lambda it: nothing_is_orphaned(it.schemas),
        lambda it: topic_files_are_valid(it.schemas, it.services),
    ),
    (
        lambda it: schemas_are_valid(it.schemas),
        lambda it: ids_are_append_only(it.schemas),
    ),
    (lambda it: versions_agree(it.schemas),),
    (generated_files_are_up_to_date,),
    (lambda it: examples_read(it.schemas),),
)


def problems(sources: Sources) -> list[str]:
    """Everything the first failing stage found, one sentence each; empty: all is well."""
    for stage in STAGES:
        if found := list(chain.from_iterable(rule(sources) for rule in stage)):
            return found
    return []


def main() -> int:
    found = problems(Sources(SCHEMAS_DIR, EVENTS_PY, known_services()))
    for problem in found:
        sys.stderr.write(f"schemas: {problem}\n")
    if not found:
        count = len(list((SCHEMAS_DIR / "topics").glob("*.yaml")))
        sys.stdout.write(f"schemas: {count} topics, every rule holds\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
