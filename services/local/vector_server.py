"""The Milvus Lite server, guarded against calls side by side and a disk that is full.

Seen with milvus-lite 3.2: nothing orders a write and a flush that run in two threads, so a row that
is acknowledged can go into a buffer and a log that the flush has read and deletes; and a search
beside a flush misses what is neither buffered any more nor in a segment yet. So calls run one at a
time; most of each holds the interpreter's own lock anyway.

Seen with milvus-lite 3.2: a flush that fails drops its rows from memory, and the next one that
succeeds deletes the log they were in; a record written in part hides those after it from the next
start. So writes are refused while the disk is nearly full, and a write that fails on the disk
nevertheless ends the process at once: the next start reads everything acknowledged from the log.
"""

import errno
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import grpc
from milvus_lite.adapter.grpc.servicer import MilvusServicer
from milvus_lite.db import MilvusLite
from pymilvus.grpc_gen import milvus_pb2_grpc

from libs.kernel import DiskError
from libs.storage.room import Room, error_in_words

WORKERS: Final = 10
GRACE_S: Final = 5
MAX_MESSAGE_BYTES: Final = 256 * 1024 * 1024  # as in a full Milvus
GROWTH_BYTES: Final = 16_000_000
# What each call may write, flushes that it sets off included. Deletions make room in the end.
NEEDS: Final = {
    "Insert": GROWTH_BYTES,
    "Upsert": GROWTH_BYTES,
    "Flush": GROWTH_BYTES,
    "CreateCollection": GROWTH_BYTES,
    "CreateIndex": GROWTH_BYTES,
    "CreatePartition": GROWTH_BYTES,
    "Delete": 1_000_000,
}


def serve(directory: Path, port: int) -> None:
    """Serve the folder on loopback until KeyboardInterrupt, then close its files."""
    directory.mkdir(parents=True, exist_ok=True)
    db = MilvusLite(str(directory))
    server = grpc.server(
        ThreadPoolExecutor(WORKERS),
        interceptors=[OneAtATime(), DiskGuard(Room(directory))],
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ],
    )
    milvus_pb2_grpc.add_MilvusServiceServicer_to_server(MilvusServicer(db), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        with suppress(KeyboardInterrupt):
            server.wait_for_termination()
    finally:
        server.stop(grace=GRACE_S)
        db.close()


class OneAtATime(grpc.ServerInterceptor):
    """Lets a call begin when the one before it has ended."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        handler = continuation(details)
        if handler is None or handler.unary_unary is None:
            return handler

        def alone(request: Any, context: Any) -> Any:
            with self._turn:
                return handler.unary_unary(request, context)

        return grpc.unary_unary_rpc_method_handler(
            alone, handler.request_deserializer, handler.response_serializer
        )


class DiskGuard(grpc.ServerInterceptor):
    """Refuses writes without room, and ends the process after one that failed on the disk."""

    def __init__(self, room: Room) -> None:
        self._room = room

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        handler = continuation(details)
        needed_bytes = NEEDS.get(details.method.rpartition("/")[2])
        if handler is None or needed_bytes is None:
            return handler

        def guarded(request: Any, context: Any) -> Any:
            if lack := self._room.lack(needed_bytes):
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, _in_words(lack))
            response = handler.unary_unary(request, context)
            reason = getattr(response, "status", response).reason
            if isinstance(error_in_words(reason), DiskError):
                _end(reason)
            return response

        return grpc.unary_unary_rpc_method_handler(
            guarded, handler.request_deserializer, handler.response_serializer
        )


def _in_words(lack: DiskError) -> str:
    """With the system's own words, by which the client knows it."""
    return f"{os.strerror(errno.ENOSPC if lack.full else errno.EROFS)}: {lack}"


def _end(reason: str) -> None:
    """Before any other call can write or flush."""
    with suppress(OSError):
        sys.stderr.write(f"ends, so that its log is read anew: {reason}\n")
    os._exit(1)
