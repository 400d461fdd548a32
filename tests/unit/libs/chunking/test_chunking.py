"""What holds for every chunk set, whatever the document."""

import sys
from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libs.chunking.chunking import ChunkSet, chunk_document
from libs.chunking.plan import STRATEGIES, ChunkPlan, override_plan, recommend_plan
from libs.chunking.profile import profile_of
from libs.chunking.structure import MAX_TITLE_CHARS
from libs.documents.builder import BlockBuilder
from libs.documents.markdown import heading_title
from libs.documents.model import Block, BlockKind, Chunk, ParsedDocument
from libs.kernel import PermanentError
from tests.parsed import markdown, plain

WORDS = st.text(alphabet="abc 。！？，.,;\n第一章甲乙丙\u0301\u200d😀|", min_size=1, max_size=400)
BLOCKS = st.lists(
    st.tuples(
        st.sampled_from([kind for kind in BlockKind if kind is not BlockKind.PAGE_BREAK]),
        WORDS,
        st.integers(1, 6),
        st.booleans(),
    ),
    max_size=30,
)
PLAN = ChunkPlan(parent_max_chars=300, parent_min_chars=80, child_max_chars=60, table_max_chars=120)


def build(parts: list[tuple[BlockKind, str, int, bool]]) -> ParsedDocument:
    builder = BlockBuilder()
    builder.page_break()
    for kind, text, level, new_page in parts:
        if new_page:
            builder.page_break()
        builder.add(kind, text, level=level if kind is BlockKind.HEADING else None)
    return ParsedDocument(builder.text, builder.blocks, "text/plain")


def chunked(document: ParsedDocument, plan: ChunkPlan = PLAN) -> ChunkSet:
    return chunk_document(document, plan, "d", 1)


def assert_covers(chunks: list[Chunk], text: str) -> None:
    """Every visible character is in exactly one chunk, in order."""
    position = 0
    for chunk in chunks:
        assert text[position : chunk.start].strip() == ""
        assert chunk.start < chunk.end
        assert chunk.text == text[chunk.start : chunk.end]
        position = chunk.end
    assert text[position:].strip() == ""


@st.composite
def plans(draw: st.DrawFn) -> ChunkPlan:
    """Any plan, with sizes in the range of the documents here."""
    sizes = sorted(draw(st.lists(st.integers(50, 400), min_size=3, max_size=3)))
    return ChunkPlan(
        strategies=tuple(draw(st.lists(st.sampled_from(STRATEGIES), min_size=1, unique=True))),
        child_max_chars=sizes[0],
        table_max_chars=sizes[1],
        parent_max_chars=sizes[2],
        parent_min_chars=draw(st.integers(0, sizes[2])),
    )


@given(BLOCKS, plans(), st.lists(st.integers(-5, 3000), unique=True).map(sorted))
@settings(deadline=None, max_examples=300)
def test_chunks_hold_all_text_once_within_their_bounds(
    parts: list[tuple[BlockKind, str, int, bool]], plan: ChunkPlan, cuts: list[int]
) -> None:
    """Wherever a strategy wants to cut: a subject's or a model's cuts are but offsets."""
    document = build(parts)
    made = chunk_document(document, plan, "d", 1, cuts=cuts)
    assert_covers(made.parents, document.text)
    assert_covers(made.children, document.text)
    assert all(len(parent.text) <= plan.parent_max_chars for parent in made.parents)
    assert all(len(child.text) <= plan.table_max_chars for child in made.children)
    by_lines = [b for b in document.blocks if b.kind in {BlockKind.TABLE, BlockKind.CODE}]
    for child in made.children:
        if "structure" not in plan.strategies or not _touches(child, by_lines):
            assert len(child.text) <= plan.child_max_chars
    titles = titles_of(document)
    for chunk in [*made.parents, *made.children] if "structure" in plan.strategies else []:
        touched = [titles[b] for b in document.blocks if _touches(chunk, [b])]
        path = tuple(
            names[0] for names in takewhile(lambda n: len(set(n)) == 1, zip(*touched, strict=False))
        )
        assert chunk.heading_path[: len(path)] == path
        header = chunk.heading_path[len(path) :]
        assert not header or _touches(chunk, by_lines)
    parents = {parent.chunk_id: parent for parent in made.parents}
    for child in made.children:
        assert child.parent_id is not None
        parent = parents[child.parent_id]
        assert parent.start <= child.start
        assert child.end <= parent.end
    assert [child.ordinal for child in made.children] == list(range(len(made.children)))
    assert chunk_document(document, plan, "d", 1, cuts=cuts) == made


def _touches(chunk: Chunk, blocks: list[Block]) -> bool:
    return any(block.start < chunk.end and chunk.start < block.end for block in blocks)


def titles_of(document: ParsedDocument) -> dict[Block, tuple[str, ...]]:
    """The titles that each block stands under, outermost first, its own included."""
    under: list[tuple[int, str]] = []
    titles = {}
    for block in document.blocks:
        if block.kind is BlockKind.HEADING:
            title = heading_title(document.text[block.start : block.end])[:MAX_TITLE_CHARS]
            under = [one for one in under if one[0] < (block.level or 1)]
            under.append((block.level or 1, title))
        titles[block] = tuple(title for _, title in under)
    return titles


def test_prose_is_cut_where_somebody_says_that_a_subject_begins() -> None:
    text = "Sentences about cats are here. " * 9 + "Now something about tax follows. " * 12
    subject = text.index("Now")
    plan = ChunkPlan(child_max_chars=400, table_max_chars=400, parent_min_chars=200)
    made = chunk_document(plain(text), plan, "d", 1, cuts=[subject])
    assert subject in {child.start for child in made.children}
    assert subject in {parent.start for parent in made.parents}
    assert subject not in {child.start for child in chunked(plain(text), plan).children}


def test_a_cut_never_parts_a_letter_from_its_marks() -> None:
    text = "e\u0301" * 400
    made = chunk_document(plain(text), PLAN, "d", 1, cuts=list(range(1, len(text), 7)))
    assert not any(child.text.startswith("\u0301") for child in made.children)


def test_small_prose_children_stay_below_their_own_limit() -> None:
    made = chunked(plain("一句话说完了。" * 200))
    assert max(len(child.text) for child in made.children) <= 60
    assert all(child.text.endswith("。") for child in made.children)


def test_heading_paths_follow_the_sections() -> None:
    body = "内容在这里。" * 20
    made = chunked(markdown(f"# 手册\n\n## 考勤\n\n{body}\n\n## 差旅\n\n### 住宿\n\n{body}\n"))
    paths = {child.heading_path for child in made.children}
    assert ("手册", "考勤") in paths
    assert ("手册", "差旅", "住宿") in paths
    assert made.children[0].text.startswith("# 手册\n\n## 考勤\n\n内容")


def test_a_heading_is_never_the_end_of_a_chunk_that_has_more_to_come() -> None:
    sections = "".join(f"## 第{n}节\n\n{'正文内容。' * (n % 9 + 3)}\n\n" for n in range(60))
    made = chunked(markdown(sections))
    for chunk in [*made.parents, *made.children]:
        assert not chunk.text.rstrip().split("\n")[-1].startswith("##")


def test_tables_and_code_that_fit_are_not_cut() -> None:
    table = "| a | b |\n|---|---|\n" + "".join(f"| {n} | {n * n} |\n" for n in range(8))
    code = "```python\n" + "x = 1\n\n" * 12 + "```"
    made = chunked(markdown(f"前言。\n\n{table}\n中间。\n\n{code}\n\n结束。\n"))
    texts = [child.text for child in made.children]
    assert any(table.strip() in text for text in texts)
    assert any(code in text for text in texts)


def test_long_tables_are_cut_between_rows_and_later_parts_carry_the_header() -> None:
    rows = [f"工号{n} | 姓名{n} | 部门{n}" for n in range(200)]
    table = "工号 | 姓名 | 部门\n" + "\n".join(rows)
    made = chunked(
        build([(BlockKind.HEADING, "考勤", 1, False), (BlockKind.TABLE, table, 1, False)])
    )
    lines = {"考勤", "", *table.split("\n")}
    for chunk in [*made.parents, *made.children]:
        assert set(chunk.text.split("\n")) <= lines
        if not chunk.text.startswith(("考勤", "工号 |")):
            assert chunk.heading_path == ("考勤", "工号 | 姓名 | 部门")


def test_the_last_rows_keep_their_header_when_a_few_words_join_them() -> None:
    table = "no | name\n" + "\n".join(f"{n} | staff member {n}" for n in range(30))
    parts = [(BlockKind.TABLE, table, 1, False), (BlockKind.PARAGRAPH, "As of May.", 1, False)]
    made = chunked(build(parts))
    last = made.children[-1]
    assert last.text.endswith("| staff member 29\n\nAs of May.")
    assert last.heading_path == ("no | name",)


def test_english_is_cut_between_sentences_and_not_in_abbreviations() -> None:
    text = "Dr. Smith of the U.S. office paid 3.14 dollars. Nobody asked him why he did so. " * 20
    made = chunked(plain(text))
    assert all(
        child.text.endswith("so.") or child.text.endswith("dollars.") for child in made.children
    )


def test_pages_are_those_of_the_first_character() -> None:
    made = chunked(
        build(
            [
                (BlockKind.PARAGRAPH, "一" * 250, 1, False),
                (BlockKind.PARAGRAPH, "二" * 250, 1, True),
            ]
        )
    )
    assert [parent.page for parent in made.parents] == [1, 2]


@pytest.mark.parametrize(
    "text",
    ["没有标点的一段" * 9000, "word " * 12000, "x" * 60000, "\n \n" * 20000 + "x", ". " * 30000],
    ids=["chinese", "words", "one-word", "blank", "dots"],
)
def test_work_is_linear_in_length(text: str) -> None:
    def calls(times: int) -> int:
        document = plain(text * times)
        plan = recommend_plan(profile_of(document))
        count = 0

        def counted(_frame: object, event: str, _argument: object) -> None:
            nonlocal count
            count += event in {"call", "c_call"}

        sys.setprofile(counted)
        try:
            chunked(document, plan)
        finally:
            sys.setprofile(None)
        return count

    assert calls(8) < 8 * calls(1) * 1.5 + 1_000


def test_ids_derive_from_document_generation_and_ordinal() -> None:
    made = chunk_document(plain("甲。" * 400), PLAN, "doc", 7)
    assert [parent.chunk_id for parent in made.parents][:2] == ["doc.7.p0", "doc.7.p1"]
    assert [child.chunk_id for child in made.children][:2] == ["doc.7.c0", "doc.7.c1"]


def test_english_gets_larger_children_than_chinese() -> None:
    chinese = recommend_plan(profile_of(plain("公司员工手册。" * 50)))
    english = recommend_plan(profile_of(plain("The staff handbook of the company. " * 50)))
    assert english.child_max_chars > chinese.child_max_chars
    assert chinese.reasons


@pytest.mark.parametrize(
    ("wanted", "child", "table", "parent"),
    [
        ({}, 60, 120, 300),
        ({"child_max_chars": 200}, 200, 200, 300),
        ({"child_max_chars": 900}, 900, 900, 900),
        ({"parent_max_chars": 100}, 60, 100, 100),
        ({"parent_max_chars": 50}, 50, 50, 50),
        ({"table_max_chars": 50}, 50, 50, 300),
    ],
)
def test_sizes_left_open_give_way(
    wanted: dict[str, int], child: int, table: int, parent: int
) -> None:
    plan = override_plan(PLAN, wanted)
    sizes = (plan.child_max_chars, plan.table_max_chars, plan.parent_max_chars)
    assert sizes == (child, table, parent)


@pytest.mark.parametrize(
    "wanted",
    [{"child_max_chars": 5}, {"strategies": ["magic"]}, {"sizes": 3}, {"parent_max_chars": "x"}],
)
def test_a_plan_nobody_could_follow_is_refused(wanted: dict[str, object]) -> None:
    with pytest.raises(PermanentError, match="bad-plan"):
        override_plan(PLAN, wanted)


def test_a_stopped_cut_ends_early() -> None:
    document = plain("一段普通的文字。\n\n" * 500)
    asked = iter([False, False, True])
    made = chunk_document(document, PLAN, "d", 1, stopped=lambda: next(asked))
    assert [parent.ordinal for parent in made.parents] == [0, 1]
