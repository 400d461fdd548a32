"""Ids: unique, in the order in which they were made, and of the standard's form."""

import time
from concurrent.futures import ThreadPoolExecutor
from uuid import RFC_4122, UUID

import pytest

from libs.kernel import new_id
from libs.kernel.ids import made_at_us


def test_ids_of_one_millisecond_are_in_the_order_they_were_made_in() -> None:
    made = [new_id() for _ in range(10_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_a_clock_that_goes_back_turns_no_order_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_id()
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000_000)
    assert new_id() > before


def test_threads_never_get_the_same_one() -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: new_id(), range(10_000)))
    assert len(set(made)) == len(made)


def test_they_are_uuids_of_version_7_that_tell_their_time() -> None:
    before_us = time.time_ns() // 1_000
    made = new_id()
    parsed = UUID(made)
    assert (parsed.version, parsed.variant) == (7, RFC_4122)
    assert before_us - 1_000 <= made_at_us(made) <= time.time_ns() // 1_000
