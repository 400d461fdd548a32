"""What a document is taken for, and how noisy it is."""

import pytest

from libs.chunking.plan import recommend_plan
from libs.chunking.profile import DocumentType, profile_of
from libs.documents.builder import BlockBuilder
from libs.documents.markdown import read_markdown
from libs.documents.model import BlockKind, ParsedDocument
from libs.documents.plain import read_plain


def document(source: str, media_type: str = "text/plain") -> ParsedDocument:
    read = read_markdown if media_type == "text/markdown" else read_plain
    text, blocks = read(source)
    return ParsedDocument(text, blocks, media_type)


@pytest.mark.parametrize(
    ("source", "media_type", "kind"),
    [
        ("甲方：星河公司\n乙方：李四\n\n甲方应向乙方付款。乙方应交货。", "text/plain", "contract"),
        (
            "THIS AGREEMENT is made between the parties, hereinafter A and B. Whereas the parties "
            "agree, this Agreement binds the parties.",
            "text/plain",
            "contract",
        ),
        (
            "考勤管理制度\n\n第一条 九点上班。\n\n第二条 六点下班。\n\n第三条 迟到扣款。",
            "text/plain",
            "policy",
        ),
        ("Travel policy\n\nFlights are booked by the office.", "text/plain", "policy"),
        (
            "# A\n\n## B\n\nb\n\n## C\n\nc\n\n## D\n\nd\n\n# E\n\n## F\n\nf",
            "text/markdown",
            "manual",
        ),
        (
            "Deep sleep in cats\n\nAbstract\n\nCats sleep.\n\nReferences\n\n[1] A cat.",
            "text/plain",
            "paper",
        ),
        ("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 40, "text/markdown", "table"),
        ("Hello", "message/rfc822", "mail"),
        (
            "Hello",
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            "slides",
        ),
        ("a", "application/vnd.ms-excel", "table"),
        ("Once upon a time there was a cat.", "text/plain", "plain"),
        ("", "text/plain", "plain"),
    ],
)
def test_types(source: str, media_type: str, kind: str) -> None:
    profile = profile_of(document(source, media_type))
    assert profile.document_type == DocumentType(kind)
    plan = recommend_plan(profile)
    assert len(plan.reasons) == len(plan.reasons_zh) > 0


def test_the_heading_tree_and_block_lengths() -> None:
    text = "# A\n\n## B\n\n" + "word " * 100 + "\n\nshort\n\nshort\n"
    profile = profile_of(document(text, "text/markdown"))
    assert (profile.heading_count, profile.heading_depth) == (2, 2)
    assert profile.block_chars_median == 5
    assert profile.longest_block_chars == 499


CLEAN = "This is a sentence that runs over the whole line of the page it was written on.\n" * 40


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ("clean \ufffd\ufffd \ue000 text " * 30, "odd_characters"),
        (
            "".join(f"words {chr(97 + n)} of\na column\n"[: 12 + n] + "\n" for n in range(26)),
            "broken_lines",
        ),
        ("".join(f"{CLEAN[:240]}Annual report, page {n}\n" for n in range(30)), "repeated_lines"),
    ],
)
def test_each_kind_of_noise_is_told_and_the_plan_says_so(source: str, field: str) -> None:
    profile = profile_of(document(source))
    assert profile.noise.is_high
    assert getattr(profile.noise, field) == max(
        profile.noise.odd_characters, profile.noise.broken_lines, profile.noise.repeated_lines
    )
    assert any("llm" in reason for reason in recommend_plan(profile).reasons)
    assert "llm" not in recommend_plan(profile).strategies


@pytest.mark.parametrize(
    "source",
    [
        "".join(f"Sentence number {n} says something of its own.\n" for n in range(60)),
        "第一条 上班时间。\n第二条 下班时间。\n" + "一段完整的话在这里结束。\n" * 30,
        "",
    ],
)
def test_clean_text_is_not_called_noisy(source: str) -> None:
    assert not profile_of(document(source)).noise.is_high


def test_rows_of_tables_and_lines_of_code_are_no_broken_lines() -> None:
    builder = BlockBuilder()
    builder.add(BlockKind.TABLE, "\n".join(["a | b"] * 50))
    builder.add(BlockKind.CODE, "\n".join(["x = 1"] * 50))
    made = ParsedDocument(builder.text, builder.blocks, "text/plain")
    assert not profile_of(made).noise.is_high
