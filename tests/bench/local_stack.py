"""The local stack: time to ready, memory when idle, and answers while a library is loaded.

`python -m tests.bench.local_stack` prints one table; every figure beside its limit.
"""

import statistics
import tempfile
import threading
import time
from pathlib import Path

import psutil

from tests.corpus import MadeDocument, make_documents
from tests.e2e.stack import Stack, wait_until

READY_TARGET_S = 10.0
PSS_TARGET_MB = 1200.0
LOADED_TARGET = 2.0
KNOWN = 6
LOADED = 100
QUESTIONS = 30


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder) / "home")
        started = time.monotonic()
        stack.start()
        first_ready_s = time.monotonic() - started
        try:
            measure(stack, first_ready_s)
        finally:
            stack.stop()


def measure(stack: Stack, first_ready_s: float) -> None:
    known = make_documents(KNOWN, seed=7)
    for document in known:
        stack.upload(document.name, document.text)
    time.sleep(5)  # let the start's work settle before memory is read
    memory = pss_mb(stack)
    idle_s = statistics.median(ask_all(stack, known, QUESTIONS))

    stopped = threading.Event()
    loaded: list[float] = []
    identities = upload_all(stack, make_documents(LOADED, seed=8))
    asker = threading.Thread(target=keep_asking, args=(stack, known, stopped, loaded))
    asker.start()
    started = time.monotonic()
    for identity in identities:
        wait_until(lambda i=identity: stack.finished(i)["state"] == "indexed", "loaded", 900)  # type: ignore[misc]
    loading_s = time.monotonic() - started
    stopped.set()
    asker.join()
    loaded_s = statistics.median(loaded)

    print(f"{'what':<52}{'measured':>12}{'limit':>10}{'ratio':>8}")
    row("seconds from the command to ready", first_ready_s, READY_TARGET_S)
    row("PSS of all processes, idle, MB", sum(memory.values()), PSS_TARGET_MB)
    for name, used_mb in sorted(memory.items(), key=lambda item: -item[1]):
        print(f"  {name:<50}{used_mb:>12.1f}")
    print(f"{'answer, idle, p50, ms':<52}{idle_s * 1e3:>12.1f}")
    print(f"{f'answer while {LOADED} documents load, p50, ms':<52}{loaded_s * 1e3:>12.1f}")
    row("loaded / idle", loaded_s / idle_s, LOADED_TARGET)
    print(f"({len(loaded)} questions while {LOADED} documents were indexed in {loading_s:.0f} s)")


def row(what: str, measured: float, limit: float) -> None:
    print(f"{what:<52}{measured:>12.2f}{limit:>10.2f}{measured / limit:>8.2f}")


def pss_mb(stack: Stack) -> dict[str, float]:
    assert stack.process is not None
    used: dict[str, float] = {}
    for process in [psutil.Process(stack.process.pid), *stack.family()]:
        name = " ".join(process.cmdline()).removeprefix("sluice: ").split(" ")[0][:40]
        used[name] = used.get(name, 0.0) + process.memory_full_info().pss / 1e6
    return used


def ask_all(stack: Stack, known: list[MadeDocument], count: int) -> list[float]:
    return [ask_one(stack, known[number % len(known)]) for number in range(count)]


def ask_one(stack: Stack, document: MadeDocument) -> float:
    started = time.monotonic()
    turn = stack.ask(document.question)
    elapsed_s = time.monotonic() - started
    assert document.answer in turn["answer"], turn
    return elapsed_s


def keep_asking(
    stack: Stack, known: list[MadeDocument], stopped: threading.Event, elapsed_s: list[float]
) -> None:
    number = 0
    while not stopped.wait(0.2):
        elapsed_s.append(ask_one(stack, known[number % len(known)]))
        number += 1


def upload_all(stack: Stack, documents: list[MadeDocument]) -> list[str]:
    with stack.client() as client:
        return [
            client.post("/v1/documents", files={"file": (d.name, d.text)}).json()["id"]
            for d in documents
        ]


if __name__ == "__main__":
    main()
