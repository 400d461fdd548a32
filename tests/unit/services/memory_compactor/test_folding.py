"""Folding conversations: bounded, in order, the same however the turns arrive."""

from hypothesis import given
from hypothesis import strategies as st

from libs.contracts.memory import ConversationMemory, Exchange
from services.memory_compactor.domain.folding import fold
from services.memory_compactor.domain.slots import update_slots
from services.memory_compactor.domain.summary import SUMMARY_CHARS, fold_into
from services.memory_compactor.domain.window import WINDOW_CHARS, WINDOW_TURNS, split_window

EMPTY = ConversationMemory()


def talk(count: int, *, size: int = 20) -> list[Exchange]:
    return [
        Exchange(i, f"Question {i}?", f"Answer {i}. " + "x" * size) for i in range(1, count + 1)
    ]


def window_chars(memory: ConversationMemory) -> int:
    return sum(len(e.question) + len(e.answer) for e in memory.window)


def test_window_keeps_the_last_four_word_for_word() -> None:
    memory = fold(EMPTY, talk(7), strategy="window")
    assert list(memory.window) == talk(7)[3:]
    assert (memory.folded_turn_seq, memory.summary) == (7, "")


def test_summary_takes_what_leaves_the_window() -> None:
    memory = fold(EMPTY, talk(7), strategy="summary")
    assert len(memory.window) == WINDOW_TURNS
    assert [line.split(" → ")[0] for line in memory.summary.splitlines()] == [
        "Question 1?",
        "Question 2?",
        "Question 3?",
    ]
    assert "Answer 1." in memory.summary


def test_none_keeps_only_the_position() -> None:
    assert fold(EMPTY, talk(3), strategy="none") == ConversationMemory(3)


def test_long_exchanges_leave_room_for_fewer_and_one_is_cut() -> None:
    memory = fold(EMPTY, talk(4, size=900), strategy="summary")
    assert [e.seq for e in memory.window] == [3, 4]
    assert [line.split("?")[0] for line in memory.summary.splitlines()] == [
        "Question 1",
        "Question 2",
    ]
    huge = fold(EMPTY, [Exchange(1, "q" * 5_000, "a" * 5_000)], strategy="window")
    assert window_chars(huge) <= WINDOW_CHARS
    assert "[…]" in huge.window[0].answer


@given(
    st.lists(st.tuples(st.text(max_size=300), st.text(max_size=3_000)), max_size=12),
    st.integers(0, 12),
    st.sampled_from(["window", "summary"]),
)
def test_bounds_hold_and_the_grouping_of_turns_does_not_matter(
    texts: list[tuple[str, str]], cut: int, strategy: str
) -> None:
    exchanges = [Exchange(i, q, a) for i, (q, a) in enumerate(texts, 1)]
    at_once = fold(EMPTY, exchanges, strategy=strategy)
    in_two = fold(
        fold(EMPTY, exchanges[:cut], strategy=strategy), exchanges[cut:], strategy=strategy
    )
    assert at_once == in_two
    assert len(at_once.window) <= WINDOW_TURNS
    assert window_chars(at_once) <= WINDOW_CHARS
    assert len(at_once.summary) <= SUMMARY_CHARS


def test_summary_drops_its_oldest_lines_when_full() -> None:
    summary = ""
    for exchange in talk(60):
        summary = fold_into(summary, [exchange])
    assert len(summary) <= SUMMARY_CHARS
    assert summary.splitlines()[-1].startswith("Question 60?")
    assert "Question 1?" not in summary


def test_summary_line_tells_the_gist_without_markers_or_introduction() -> None:
    answer = "From the documents, quoted word for word:\n\n“The limit is 20,000 yuan.” [1]"
    assert fold_into("", [Exchange(1, "What is\nthe limit?", answer)]) == (
        "What is the limit? → The limit is 20,000 yuan."
    )


def test_unanswered_exchanges_leave_no_line() -> None:
    assert fold_into("", [Exchange(1, "What?", "")]) == ""


def test_split_of_nothing() -> None:
    assert split_window([]) == ([], [])


def stated(*questions: str) -> dict[str, str]:
    return update_slots({}, [Exchange(i, q, "") for i, q in enumerate(questions, 1)])


def test_slots_hold_what_the_user_stated() -> None:
    assert stated("我的订单号是2024051801，现在到哪一步了？") == {"order_number": "2024051801"}
    assert stated("My order number is AB-2024051801. Where is it?") == {
        "order_number": "AB-2024051801"
    }
    assert stated("工单号：778899，金额为 20,000 元。") == {
        "ticket_number": "778899",
        "amount": "20,000 元",
    }
    assert stated("The budget is $5,000 for this.")["amount"] == "$5,000"


def test_slots_ignore_doubts_and_answers_and_later_statements_replace() -> None:
    assert stated("Is the amount 500?", "金额是500吗？") == {}
    assert update_slots({}, [Exchange(1, "Where is it?", "Your order number is 2024051801.")]) == {}
    assert stated("订单号1111111", "order 2222222") == {"order_number": "2222222"}
