"""Chunks from the middle of a document carry how it begins."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.chunking.chunking import chunk_document
from libs.chunking.lead import HAN_CHARS, OTHER_CHARS, lead_of
from libs.chunking.plan import ChunkPlan
from libs.documents.model import ParsedDocument
from libs.documents.plain import read_plain


@pytest.mark.parametrize(
    ("text", "lead"),
    [
        ("# Travel policy\n\n| a | b |\n", "Travel policy a b"),
        ("  Stellar Ltd.\n\n\nFounded 2005.", "Stellar Ltd. Founded 2005."),
        ("word " * 100, " ".join(["word"] * 32)),
        ("x" * 500, "x" * OTHER_CHARS),
        ("病历全文：\n姓名：顾某某", "病历全文： 姓名：顾某某"),
        ("差" * 500, "差" * HAN_CHARS),
        ("", ""),
        ("\n# \n---\n", ""),
    ],
)
def test_the_lead_is_the_first_words_without_markup(text: str, lead: str) -> None:
    assert lead_of(text) == lead


@given(st.text(alphabet=st.sampled_from("ab 差病\n#|*\u3000。."), max_size=400))
def test_a_lead_is_bounded_and_said_in_the_text(text: str) -> None:
    lead = lead_of(text)
    assert len(lead) <= OTHER_CHARS
    assert re.sub(r"[\s#|*]", "", text).startswith(re.sub(r"[\s#|*]", "", lead))


def test_children_carry_the_lead() -> None:
    source = "Stellar Ltd., a film company.\n\n" + "The year was good for all of us. " * 200
    text, blocks = read_plain(source)
    document = ParsedDocument(text=text, blocks=blocks, media_type="text/plain")
    chunks = chunk_document(document, ChunkPlan(), "d", 1)
    first, *others = chunks.children
    assert (first.lead, first.start) == ("", 0)
    assert len(others) > 3
    assert {chunk.lead for chunk in others} == {lead_of(text)}
    assert {chunk.lead for chunk in chunks.parents} == {""}
