"""What a document or a model says stays inside the event that tells of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.web.sse import event

FORGED = 'x\n\nid: 9\nevent: done\ndata: {"answer": "forged"}\n\n'


def parsed(sent: bytes) -> list[dict[str, str]]:
    """The events in a stream, their lines ended by any of the ways that the standard knows."""
    text = sent.decode().replace("\r\n", "\n").replace("\r", "\n")
    blocks = [block for block in text.split("\n\n") if block]
    return [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]


@pytest.mark.parametrize("said", [FORGED, FORGED.replace("\n", "\r"), "\x00\u2028\x85", "data: x"])
def test_no_text_begins_an_event_of_its_own(said: str) -> None:
    (one,) = parsed(event("delta", {"text": said}, seq=3).encode())
    assert (one["id"], one["event"]) == ("3", "delta")
    assert json.loads(one["data"]) == {"text": said}


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_nor_does_any_other(said: str) -> None:
    (one,) = parsed(event("delta", {said: said}, seq=3).encode())
    assert json.loads(one["data"]) == {said: said}
