"""The part of the lock file that services need: all but what only the development group asks for.

    python deploy/runtime_lock.py requirements.lock > runtime.lock

Follows the `# via` comments that the resolver writes, so it needs nothing but the lock file.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^\]]*\])?==")
_VIA = re.compile(r"    #(?: via|  ) +(?P<by>\S+)(?: \((?P<file>[^)]*)\))?$")
_PROJECT = "pyproject.toml"  # the development group's is `pyproject.toml:dev`


def runtime_lock(text: str) -> str:
    """The entries that the project's own dependencies lead to, unchanged and in their order.

    Raises: ValueError when an entry does not say what asked for it.
    """
    entries = list(_entries(text))
    asked_by = {name: set(_asked_by(name, entry)) for name, entry in entries}
    wanted: set[str] = {_PROJECT}
    while True:
        more = {name for name, by in asked_by.items() if by & wanted} - wanted
        if not more:
            return "".join(entry for name, entry in entries if name in wanted)
        wanted |= more


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Each package's name and lines."""
    for block in re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE):
        if pin := _PIN.match(block):
            yield pin["name"], block


def _asked_by(name: str, entry: str) -> Iterator[str]:
    found = [via for line in entry.splitlines() if (via := _VIA.match(line))]
    if not found:
        raise ValueError(f"{name}: the lock file does not say what asked for it (`# via`)")
    for via in found:
        yield via["file"] or via["by"]


if __name__ == "__main__":
    sys.stdout.write(runtime_lock(Path(sys.argv[1]).read_text()))
