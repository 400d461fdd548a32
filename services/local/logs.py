"""The end of a service's log, shortened for a person."""

import json
import os
from pathlib import Path

from libs.kernel import printable

TAIL_BYTES = 65_536
MAX_LINE = 200


def last_log_lines(log_file: Path, count: int = 6) -> list[str]:
    """The newest lines that are not blank; a structured one becomes its event and its cause."""
    try:
        with log_file.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - TAIL_BYTES))
            text = log.read().decode(errors="replace")
    except OSError:
        return []
    lines = [line for line in text.split("\n") if line.strip()][-count:]
    return [_shortened(line) for line in lines]


def _shortened(line: str) -> str:
    try:
        entry = json.loads(line)
        event = str(entry["event"]).strip().splitlines()[0]
    except (ValueError, KeyError, TypeError, IndexError):
        return _cut(line)
    cause = _cause(str(entry.get("exception", "")) or str(entry["event"]))
    return _cut(f"{entry.get('level', 'info')}: {event}" + (f": {cause}" if cause else ""))


def _cause(trace: str) -> str:
    """The last line of a traceback that names an exception; '' for a text that is none."""
    if "Traceback" not in trace:
        return ""
    named = [line.strip(" |+-") for line in trace.splitlines()]
    named = [line for line in named if line and not line.startswith(("File ", "^", "~"))]
    return named[-1] if named else ""


def _cut(line: str) -> str:
    line = printable(line)
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"
