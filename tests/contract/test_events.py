"""Any event of any type survives the wire; anything else on the wire is a permanent error."""

import dataclasses
import typing
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from libs.contracts import (
    ConversationExecutionPlan,
    Event,
    ExecutionMode,
    decode,
    encode,
    load_topics,
    topic_of,
)
from libs.contracts.plan import MAX_SUB_QUESTIONS
from libs.kernel import PermanentError

EVENT_TYPES: tuple[type[Any], ...] = typing.get_args(Event)
QUICK = settings(max_examples=20, deadline=None)


@st.composite
def plans(draw: st.DrawFn) -> ConversationExecutionPlan:
    mode = draw(st.sampled_from(ExecutionMode))
    clarify = mode is ExecutionMode.CLARIFY
    return ConversationExecutionPlan(
        execution_mode=mode,
        rewritten_question=draw(st.text(min_size=1).filter(str.strip)),
        sub_questions=draw(st.lists(st.text(), max_size=MAX_SUB_QUESTIONS)),
        knowledge_domains=draw(st.lists(st.text())),
        clarify_question=draw(st.text(min_size=1)) if clarify else draw(st.sampled_from([None])),
        agent_id=draw(st.text()),
    )


VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(-(2**63), 2**63 - 1),
    ConversationExecutionPlan: plans(),
}


def instances(event_type: type[Any]) -> st.SearchStrategy[Any]:
    fields = {field.name: VALUES[field.type] for field in dataclasses.fields(event_type)}
    return st.builds(event_type, **fields)


def test_every_topic_has_its_event_type_and_the_other_way_round() -> None:
    names = [event_type.__name__ for event_type in EVENT_TYPES]
    assert sorted(topic.event for topic in load_topics().values()) == sorted(names)
    assert all(topic_of(name).event == name for name in names)


@pytest.mark.parametrize("event_type", EVENT_TYPES)
@QUICK
@given(data=st.data())
def test_an_event_round_trips(event_type: type[Any], data: st.DataObject) -> None:
    event = data.draw(instances(event_type))
    read = decode(encode(event))
    assert read == event
    assert type(read) is event_type


@pytest.mark.parametrize("event_type", EVENT_TYPES)
@QUICK
@given(data=st.data())
def test_damaged_bytes_are_another_event_or_a_permanent_error(
    event_type: type[Any], data: st.DataObject
) -> None:
    value = encode(data.draw(instances(event_type)))
    at = data.draw(st.integers(0, len(value) - 1))
    damaged = value[:at] + data.draw(st.binary(max_size=12)) + value[at + 1 :]
    assume(damaged != value)
    try:
        outcome: object = decode(damaged)
    except PermanentError as exc:
        outcome = exc.reason
    assert isinstance(outcome, EVENT_TYPES) or outcome in {"undecodable", "unknown-schema"}


@QUICK
@given(value=st.binary())
def test_foreign_bytes_are_a_permanent_error(value: bytes) -> None:
    assume(value[:4] != b"\x00\x00\x00\x00")
    with pytest.raises(PermanentError):
        decode(value)
