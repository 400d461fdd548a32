"""A Milvus Lite server for tests: its own port and folder, gone afterwards."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_port

_SERVE = """
import sys
from pathlib import Path
from services.local.embedded import serve_milvus
serve_milvus(Path(sys.argv[1]), int(sys.argv[2]))
"""


@dataclass
class MilvusLite:
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(self.folder), str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@contextmanager
def milvus_lite(folder: Path) -> Iterator[MilvusLite]:
    """Starting, not ready: connections are refused for the first seconds, as in production."""
    server = MilvusLite(folder, free_port())
    server.start()
    try:
        yield server
    finally:
        server.kill()
