"""The report: what it says, that texts are only texts in it, and how large it gets."""

import re
from html.parser import HTMLParser

import pytest

from services.cli.inspection.gathering import Asked
from services.cli.inspection.page import page
from tests.unit.services.cli.inspection.examples import (
    block,
    chunk,
    document,
    found,
    inspected,
    parsed,
    plan,
    small,
)

HOSTILE = "</style></title><script>x()</script>\"' onload=x() <img src=//evil/x>\u202egnp.exe\x1b"


def _text(html: str) -> str:
    """What a reader sees, on one line."""
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]*>", "", html, flags=re.DOTALL).split())


@pytest.mark.parametrize(
    "said",
    [
        "rules.md indexed",
        "2; search still shows 1",
        "chunks 2, parents 1",
        "page 3 could not be read",  # a warning
        "T1parsed1{&quot;pages&quot;: 1}",  # the timeline
        "child max chars420300300",  # recommended, asked for, in force
        "Whya policy",
        "In force, becauseasked so",
        "table share0.25",  # the profile
        "Blocks: all 3. Chunks: all 2.",
        "heading level 1 · page 1 · 0–5",
        "Parent 1 · 60 characters · 0–60 · page 1 · chunks: 2",
        "Chunk 2 · 23 characters · 37–60 · page 1",
        "also indexed: Rules",
        "What may a taxi cost?",
        "would be declined: 0.20 of the weight of its terms is covered",
        "together 0.70 of 1.15 needed (uncertain).",
        "Terms and their weights: taxi 3.1",
        "keyword50stale 70.709",
        "Documents that match the filter: 1. Near-copies put below others: 1.",
        "Rerank by judge: 1 hits put in order.",
        "4Chunk 20.8710.64&lt; 0.700.200",  # the channel's own ranking
        "keyword: rank 4, is below the floor",
        "not found by vector: counted as near as its last",
        "graph: rank 9, passes the floor",
        "matches taxi 3.1",
        "rerank score 0.910",
        "moved up from fused rank 3",
        "says the same as other.1.c7",
        "No hits.",
        "Milliseconds: 15 in all; vector 12",
    ],
)
def test_the_report_says_what_happened(said: str) -> None:
    assert said in _text(page(inspected())).replace("\N{NO-BREAK SPACE}", " ")


def test_tables_are_tables_on_both_sides() -> None:
    html = page(inspected(asked=[]))
    assert html.count("<th>Item</th><th>Limit</th>") == 2
    assert html.count("<td>Taxi</td><td>100</td>") == 2


def test_empty_cells_titles_and_framed_rows_keep_their_columns() -> None:
    text = "Sales\nItem | | Limit\n| Taxi | a|b |\n|---|---|"
    rows = parsed(text, [block("table", 0, len(text))], [chunk(0, text, 0)])
    html = page(inspected(parsed=rows, asked=[]))
    for row in (
        '<tr><th colspan="3">Sales</th></tr>',
        "<tr><td>Item</td><td></td><td>Limit</td></tr>",
        "<tr><td>Taxi</td><td>a|b</td><td></td></tr>",
    ):
        assert html.count(row) == 2
    assert "---" not in html


def test_a_page_break_between_chunks_is_no_loss() -> None:
    text = "one\ntwo"
    blocks = [block("paragraph", 0, 3), block("page_break", 3, 3), block("paragraph", 4, 7)]
    broken = parsed(text, blocks, [chunk(0, "one", 0), chunk(1, "two", 4)])
    html = page(inspected(parsed=broken, asked=[]))
    assert "page break" in html
    assert "in no chunk" not in html


def test_every_section_is_one_link_away() -> None:
    html = page(inspected())
    for place in ("plan", "question-1", "contents"):
        assert html.count(f'href="#{place}"') == html.count(f'id="{place}"') == 1


def test_hits_lead_to_the_chunks_that_are_shown() -> None:
    html = page(inspected())
    assert 'href="#chunk-1"' in html
    assert 'id="chunk-1"' in html


class _Tags(HTMLParser):
    """Every element with its attributes, and what is still open at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_texts_from_anybody_stay_texts() -> None:
    text = HOSTILE
    blocks = [block("table", 0, len(text))]
    hostile = parsed(text, blocks, [chunk(0, text, 0, lead=text) | {"heading_path": [text]}])
    hostile.outline.update(title=text, language=text, warnings=[text])
    [hit] = found()["hits"]
    hit |= {"document_name": text, "text": text, "heading_path": [text], "chunk_id": text}
    hit["explanation"]["matched_terms"] = [{"term": text, "weight": 1.0}]
    hit["explanation"]["adds"] = {text: 0.3}
    whole = inspected(
        document=document(
            name=text, tags=[text], domain=text, media_type=text, state=text, reason=text,
            detail=text, stage=text,
            timeline=[{"seq": 1, "stage": text, "generation": 1, "at": text, "data": {text: text}}],
        ),
        plan=plan(requested={"child_max_chars": text}, profile={text: text}),
        parsed=hostile,
        asked=[Asked(text, found(hits=[hit]), found(hits=[hit]))],
    )  # fmt: skip
    html = page(whole)
    tags = _Tags()
    tags.feed(html)
    names = {name for name, _ in tags.seen}
    assert names.isdisjoint({"script", "img", "iframe", "link", "object", "form"})
    attributes = {name for _, given in tags.seen for name in given}
    assert attributes == {
        "charset", "http-equiv", "content", "name", "class", "style", "id", "href", "title",
    }  # fmt: skip
    assert tags.open == []
    links = [given["href"] for _, given in tags.seen if "href" in given]
    assert all(link and link.startswith("#") for link in links)
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert "[U+202E]gnp.exe" in html
    assert "default-src &#x27;none&#x27;" in html


def test_what_is_in_no_chunk_is_pointed_at() -> None:
    lost = parsed("kept LOST", [block("paragraph", 0, 9)], [chunk(0, "kept", 0)])
    assert "in no chunk" in page(inspected(parsed=lost, asked=[]))
    assert "in no chunk" not in page(inspected(asked=[]))


def test_a_large_document_stays_bounded_and_says_what_is_left() -> None:
    rows = "\n".join(f"{n} | {n}" for n in range(50_000))
    text = "y" * 1_000_000 + "\n" + rows
    blocks = [block("paragraph", 0, 1_000_000), block("table", 1_000_001, len(text))]
    html = page(inspected(parsed=parsed(text, blocks, [], total=70_000), asked=[]))
    assert len(html) < 60_000
    said = _text(html).replace("\N{NO-BREAK SPACE}", " ")
    assert "Blocks: the first 2 of 70 000" in said
    assert "69 998 more blocks are not shown" in said
    assert "997 000 more characters" in said
    assert "49 940 more rows" in said


def test_a_document_that_is_not_parsed_has_a_report_too() -> None:
    failed = document(
        state="failed", stage="parse", reason="corrupt", detail="No zip file.", counts={},
        active_counts=None, active_generation=None,
    )  # fmt: skip
    uncut = plan(used=None, recommended=None, profile=None, requested={})
    html = page(inspected(document=failed, plan=uncut, parsed=None, missing="no text", asked=[]))
    said = _text(html)
    assert "failed at parse: corrupt. No zip file." in said
    assert "no text" in said
    assert "2, not searchable yet" in said
    assert "to be cut by: what is recommended" in said
    assert "Blocks and chunks" not in said


def test_parsed_but_not_cut_yet_is_no_loss() -> None:
    whole = small()
    html = page(inspected(parsed=parsed(whole.text, whole.blocks, []), asked=[]))
    assert "not cut yet" in html
    assert "in no chunk" not in html
