"""Uploads being read leave nothing behind, not even after a kill."""

import os
import subprocess
import sys
from pathlib import Path

from services.ingest.parser.adapters.scratch import scratch_folder, sweep_scratch


def test_only_folders_of_dead_parsers_are_swept(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = tmp_path / f"sluice-parse-{dead.pid}-x"
    left.mkdir()
    (left / "source.pdf").touch()
    other = tmp_path / "sluice-parse-notes"
    other.mkdir()
    with scratch_folder(tmp_path) as mine:
        assert str(os.getpid()) in mine.name
        assert sweep_scratch(tmp_path) == 1
        assert mine.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["sluice-parse-notes"]
