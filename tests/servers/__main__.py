"""Gets every server into the cache, so that tests need not wait for downloads and builds.

    python -m tests.servers

Ends with 1 when one can't be had; each says why. Tests that want one meanwhile wait for it.
"""

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.servers.frame import MissingServerError, Server
from tests.servers.full import FullSize


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor() as threads:
        servers = FullSize(Path(scratch)).servers.values()
        return int(not all(threads.map(_provided, servers)))


def _provided(server: Server) -> bool:
    began = time.monotonic()
    server.folder.mkdir()
    try:
        server.provide()
    except MissingServerError as exc:
        print(f"{server.name} is missing: {exc}", flush=True)
        return False
    print(f"{server.name} is there after {time.monotonic() - began:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
