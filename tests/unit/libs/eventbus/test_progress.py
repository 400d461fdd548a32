"""The low-water mark: never past an unfinished record, whatever the order of finishing."""

from hypothesis import given
from hypothesis import strategies as st

from libs.eventbus.progress import Progress
from libs.eventbus.testing import MemoryRecord


def records(*offsets: int) -> list[MemoryRecord]:
    return [MemoryRecord("t", 0, offset, 0, b"k", b"") for offset in offsets]


@given(st.sets(st.integers(0, 60), min_size=1), st.randoms())
def test_the_mark_is_the_oldest_unfinished_record(offsets: set[int], random: object) -> None:
    progress = Progress(("t", 0))
    progress.take(records(*sorted(offsets)))  # gaps, as compaction leaves them
    unfinished = set(offsets)
    order = sorted(offsets)
    random.shuffle(order)  # type: ignore[attr-defined]
    for offset in order:
        assert progress.next_offset == min(unfinished)
        progress.finish(offset)
        unfinished.discard(offset)
        assert progress.unfinished_count == len(unfinished)
    assert progress.next_offset == max(offsets) + 1


def test_nothing_read_means_nothing_to_commit() -> None:
    assert Progress(("t", 0)).next_offset is None


def test_what_runs_or_finished_is_not_started_again_when_fetched_again() -> None:
    progress = Progress(("t", 0))
    progress.take(records(0, 1, 2, 3, 4))
    progress.finish(0)
    progress.finish(2)
    progress.forget([3, 4])  # 1 is running
    again = progress.take(records(1, 2, 3, 4, 5))
    assert [record.offset for record in again] == [3, 4, 5]
    for offset in (3, 4, 5):
        progress.finish(offset)
    assert progress.next_offset == 1
    progress.finish(1)
    assert progress.next_offset == 6


def test_what_somebody_else_finished_meanwhile_does_not_hold_the_mark_back() -> None:
    progress = Progress(("t", 0))
    progress.take(records(0, 1, 2))
    progress.forget([0, 1, 2])
    assert [record.offset for record in progress.take(records(7, 8))] == [7, 8]
    assert progress.next_offset == 7
