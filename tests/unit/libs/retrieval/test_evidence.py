"""Windows into parents: always a true slice, always with the best hit, never too long."""

from hypothesis import given
from hypothesis import strategies as st

from libs.retrieval.evidence import Block, window, within_budget
from libs.retrieval.types import Hit, Scores
from libs.storage.sql.hydration import StoredText

TEXT = "".join(chr(0x4E00 + i) for i in range(1_000))
PARENT_START = 40


def block(*spans: tuple[int, int]) -> Block:
    parent = StoredText("p", TEXT, PARENT_START, PARENT_START + len(TEXT), None, ())
    hits = [
        Hit("c", "d", "n", TEXT[a:b], PARENT_START + a, PARENT_START + b, None, (), Scores(1.0))
        for a, b in spans
    ]
    return Block("d", "n", parent, hits)


@given(
    best=st.tuples(st.integers(0, 900), st.integers(1, 100)),
    other=st.tuples(st.integers(0, 900), st.integers(1, 100)),
    max_chars=st.integers(120, 1_200),
)
def test_a_window_is_a_slice_with_the_best_hit(
    best: tuple[int, int], other: tuple[int, int], max_chars: int
) -> None:
    spans = [(start, start + length) for start, length in (best, other)]
    cut = window(block(*spans), max_chars)
    assert cut is not None
    assert len(cut.text) == min(max_chars, len(TEXT))
    assert cut.text == TEXT[cut.start - PARENT_START : cut.end - PARENT_START]
    assert cut.start <= PARENT_START + spans[0][0]
    assert cut.end >= PARENT_START + spans[0][1]


def test_a_hit_longer_than_the_window_is_cut() -> None:
    cut = window(block((100, 900)), 200)
    assert cut is not None
    assert cut.text == TEXT[100:300]


def test_too_little_room_gives_nothing_unless_the_parent_fits() -> None:
    assert window(block((0, 10)), 100) is None
    short = Block("d", "n", StoredText("p", "short", 0, 5, None, ()), [])
    assert window(short, 5) is not None
    assert window(short, 4) is None


def test_one_parent_may_fill_the_room_but_several_share_it() -> None:
    alone = within_budget([block((0, 10))], 900, 2_200)
    assert [len(cut.text) for _, cut in alone] == [900]
    other = Block("d2", "n", StoredText("p2", TEXT[::-1] + "别的内容", 0, 1_004, None, ()), [])
    other.hits.extend(block((0, 10)).hits)
    shared = within_budget([block((0, 10)), other], 900, 2_200)
    assert [len(cut.text) for _, cut in shared] == [450, 450]
