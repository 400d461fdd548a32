import json
from pathlib import Path

from services.local.logs import last_log_lines

TRACE = """  + Exception Group Traceback (most recent call last):
  |   File "stopping.py", line 43, in run
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "reconciler.py", line 123, in run
    |     await source.unfinished(sql)
    |           ^^^^^^^^^^^^^^^^^
    | OSError: [Errno 28] No space left on device
    +------------------------------------"""


def test_the_newest_lines_without_blank_ones(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text("\n\n".join(f"line {number}" for number in range(5000)))
    assert last_log_lines(log, 2) == ["line 4998", "line 4999"]
    assert last_log_lines(tmp_path / "absent.log") == []


def test_a_structured_line_becomes_its_event_and_its_cause(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    failed = {"event": "process_failed", "level": "error", "exception": TRACE}
    started = {"event": "process_started", "level": "info"}
    log.write_text("\n".join([json.dumps(started), json.dumps(failed), "x" * 500]))
    lines = last_log_lines(log)
    assert lines[0] == "info: process_started"
    assert lines[1] == "error: process_failed: OSError: [Errno 28] No space left on device"
    assert len(lines[2]) == 200


def test_no_text_in_a_line_becomes_a_line_or_commands_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    said = 'x\u2028{"event": "forged"}\x1b[2J\x9b31m'
    log.write_text(json.dumps({"event": f"first {said}"}, ensure_ascii=False) + f"\nplain {said}\n")
    lines = last_log_lines(log)
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)
