"""How strategies work together, and what becomes of those that cannot."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from libs.chunking.cutting import Cut, Helpers, cut
from libs.chunking.model_cuts import MAX_CHARS, model_cuts
from libs.chunking.passages import passages_of
from libs.chunking.plan import STRATEGIES
from libs.chunking.semantic import MAX_GROUPS
from libs.documents.model import Block, BlockKind, ParsedDocument
from libs.kernel import PermanentError, TransientError
from libs.models.ports import ModelUnavailableError
from tests.fakes_answering import FakeChatModel
from tests.fakes_search import FakeEmbedder
from tests.parsed import plain

CATS = [f"The cat number {n} sleeps on its warm cushion beside the stove." for n in range(9)]
TAX = [f"Income tax of bracket {n} is due to the revenue office by March." for n in range(12)]


def noisy(source: str) -> ParsedDocument:
    return plain(source + "\ufffd" * (len(source) // 10))


async def made_of(
    document: ParsedDocument, strategies: Sequence[str], helpers: Helpers, **sizes: int
) -> Cut:
    wanted = {"strategies": list(strategies), **sizes}
    return await cut(document, wanted, helpers, tenant="t", document_id="d", generation=1)


class CountingEmbedder(FakeEmbedder):
    count = 0

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.count += len(texts)
        return await super().embed_passages(texts)


async def test_semantic_cuts_where_the_subject_changes() -> None:
    document = plain(" ".join(CATS + TAX))
    change = document.text.index("Income")
    refined = await made_of(document, ["structure", "semantic"], Helpers(FakeEmbedder()))
    assert change in {child.start for child in refined.chunks.children}
    assert "cuts by subject" in refined.plan.reasons[-1]
    assert "按主题" in refined.plan.reasons_zh[-1]
    rules = await made_of(document, ["structure"], Helpers(FakeEmbedder()))
    assert change not in {child.start for child in rules.chunks.children}


async def test_semantic_costs_no_more_than_its_limit_on_a_long_document() -> None:
    embedder = CountingEmbedder()
    document = plain(" ".join((CATS + TAX) * 100))
    made = await made_of(document, ["structure", "semantic"], Helpers(embedder))
    assert embedder.count == MAX_GROUPS
    assert "beyond the limit cut recursively" in made.plan.reasons[-1]
    assert made.chunks.children[-1].end == len(document.text)


@given(
    st.lists(
        st.sampled_from(
            [*CATS[:2], *TAX[:2], "短。", "这是关于差旅报销的规定。", "x" * 130, "\n\n"]
        )
    ),
    st.lists(st.sampled_from(STRATEGIES), min_size=1, unique=True),
)
@settings(deadline=None)
def test_no_strategy_loses_or_doubles_text(parts: list[str], strategies: list[str]) -> None:
    document = noisy(" ".join(parts))
    model = FakeChatModel(plan={"begins": [1, 2]})
    made = asyncio.run(
        made_of(document, strategies, Helpers(FakeEmbedder(), model), child_max_chars=100)
    )
    for chunks in (made.chunks.parents, made.chunks.children):
        held = "".join(document.text[c.start : c.end] for c in chunks)
        assert "".join(held.split()) == "".join(document.text.split())
        assert all(c.text == document.text[c.start : c.end] for c in chunks)


async def test_an_embedder_that_is_away_is_tried_again_later() -> None:
    class Away(FakeEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
            raise TransientError("away")

    with pytest.raises(TransientError):
        await made_of(plain(" ".join(CATS + TAX)), ["semantic"], Helpers(Away()))


async def test_a_model_names_places_in_noisy_text() -> None:
    document = noisy(" ".join(CATS + TAX))
    groups = [g for p in passages_of(document, 800) for g in p.groups]
    named = next(at for at, g in enumerate(groups, 1) if g.start > len(document.text) // 2)
    model = FakeChatModel(plan={"begins": [named]})
    made = await made_of(document, ["structure", "llm"], Helpers(None, model))
    assert groups[named - 1].start in {child.start for child in made.chunks.children}
    assert "1 cuts named by the model fake" in made.plan.reasons[-1]


async def test_a_model_is_not_asked_about_clean_text() -> None:
    model = FakeChatModel(plan={"begins": [2]})
    made = await made_of(plain(" ".join(CATS + TAX)), ["llm"], Helpers(None, model))
    assert model.prompts == []
    assert "it is for noisy text" in made.plan.reasons[-1]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "unavailable"),
        (PermanentError("model-refused", "no"), "model-refused"),
        ({"begins": [0]}, "of no use"),
        ({"begins": [10_000]}, "of no use"),
        ({"begins": ["2"]}, "of no use"),
        ({"begins": [True]}, "of no use"),
        ({"begins": 2}, "of no use"),
        ({}, "of no use"),
    ],
)
async def test_a_bad_answer_changes_nothing(
    answer: dict[str, object] | Exception | None, said: str
) -> None:
    document = noisy(" ".join(CATS + TAX))
    model = FakeChatModel(plan=answer)
    made = await made_of(document, ["structure", "llm"], Helpers(None, model))
    rules = await made_of(document, ["structure"], Helpers())
    assert said in made.plan.reasons[-1]
    assert made.chunks == rules.chunks


async def test_without_a_model_the_rules_cut() -> None:
    made = await made_of(noisy(" ".join(CATS + TAX)), ["structure", "llm"], Helpers())
    assert "no model is configured" in made.plan.reasons[-1]
    assert made.chunks.children


async def test_a_slow_model_is_not_waited_for() -> None:
    class Slow(FakeChatModel):
        async def complete_json(self, *_args: object, **_options: object) -> dict[str, object]:
            await asyncio.Event().wait()
            raise ModelUnavailableError("cancelled", "never")

    document = noisy(" ".join(CATS + TAX))
    passages = list(passages_of(document, 200))
    cuts, reason = await model_cuts(document, passages, Slow(), "t", timeout_s=0.01)
    assert cuts == []
    assert "too slow" in reason.en


async def test_a_model_is_shown_no_more_than_its_limit() -> None:
    document = noisy(" ".join((CATS + TAX) * 100))
    model = FakeChatModel(plan={"begins": []})
    await made_of(document, ["structure", "llm"], Helpers(None, model))
    shown = sum(len(prompt[-1].content) for prompt in model.prompts)
    assert MAX_CHARS / 2 < shown < MAX_CHARS * 1.1


def test_passages_are_long_prose_between_headings_and_tables() -> None:
    text = "Title\n" + "a b c. " * 60 + "\nx | y\n" + "short."
    table = text.index("x |")
    blocks = [
        Block(BlockKind.HEADING, 0, 5, level=1),
        Block(BlockKind.PARAGRAPH, 6, table - 2),
        Block(BlockKind.TABLE, table, table + 5),
        Block(BlockKind.PARAGRAPH, table + 6, len(text)),
    ]
    [passage] = passages_of(ParsedDocument(text, blocks, "text/plain"), 200)
    assert passage.groups[0].start == 6
    assert passage.groups[-1].end == table - 2
