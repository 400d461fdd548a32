"""A parser child that misbehaves as the file's name says, with the protocol of the real one."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from services.ingest.parser.worker import DOCUMENT_FILE, TEXT_FILE, bound_resources


def main() -> None:
    bound_resources(int(sys.argv[3]))
    held = []
    for line in sys.stdin.buffer:
        task = json.loads(line)
        match task["name"]:
            case "hang":
                if task["media_type"]:
                    Path(task["media_type"]).touch()
                time.sleep(3600)
            case "crash":
                os.abort()
            case "eat":
                while True:
                    held.append(bytearray(os.urandom(1 << 20)) * 10)
            case "eat-at-once":
                try:
                    bytearray(2_000_000_000)
                except MemoryError:
                    answer({"refused": ["out-of-memory", ""]})
                else:
                    succeed(task)
            case "no-room":
                answer({"disk": ["/scratch: No space left on device", True]})
            case "damaged":
                answer({"refused": ["corrupt", ""]})
            case "slow-pages":
                for _ in range(6):
                    answer({"going_on": True})
                    time.sleep(1.5)
                succeed(task)
            case "bug":
                answer({"bug": "ZeroDivisionError: somewhere"})
            case "garbage":
                sys.stdout.write("not json\n")
                sys.stdout.flush()
            case "crash-once":
                marker = Path(task["media_type"])
                if not marker.exists():
                    marker.touch()
                    os.abort()
                succeed(task)
            case _:
                succeed(task)


def succeed(task: dict[str, Any]) -> None:
    (Path(task["out"]) / DOCUMENT_FILE).write_text("{}")
    (Path(task["out"]) / TEXT_FILE).write_bytes(Path(task["source"]).read_bytes())
    counts = {"char_count": os.getpid(), "block_count": 1, "table_count": 0, "row_count": 0}
    answer({"parsed": {"media_type": "text/plain", "page_count": None, **counts}})


def answer(fields: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
