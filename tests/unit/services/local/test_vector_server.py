"""Calls to Milvus Lite, whose writes and flushes lose rows when they run side by side."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import grpc

from services.local.vector_server import OneAtATime


def test_calls_of_every_method_run_one_at_a_time() -> None:
    running, most = 0, 0
    count = threading.Lock()

    def call(request: int, _context: Any) -> int:
        nonlocal running, most
        with count:
            running += 1
            most = max(most, running)
        time.sleep(0.005)
        with count:
            running -= 1
        return request

    guard = OneAtATime()
    methods = [
        guard.intercept_service(
            lambda _: grpc.unary_unary_rpc_method_handler(call), SimpleNamespace(method=name)
        ).unary_unary
        for name in ("Upsert", "Flush", "Search")
    ]
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda n: methods[n % 3](n, None), range(24)))
    assert answers == list(range(24))
    assert most == 1


def test_an_unknown_method_stays_unknown() -> None:
    assert OneAtATime().intercept_service(lambda _: None, SimpleNamespace(method="Nothing")) is None
