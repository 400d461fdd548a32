"""What every search index must do, whatever its backend. Subclasses give the `index` fixture."""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import pytest

from libs.documents.analysis import analyse
from libs.kernel import TransientError
from libs.retrieval.channels import MAX_ROWS
from libs.storage.ports import IndexRow, KeywordIndex, Vector, VectorIndex

Index = TypeVar("Index", bound=VectorIndex | KeywordIndex)

DIMENSION = 8
AWKWARD = "a\"\\' or 1 == 1 中文"
# Values that mean something to somebody on the way; each is to mean itself alone.
HOSTILE = [
    *(
        "",
        " ",
        '"',
        "'",
        "`",
        "\\",
        '\\"',
        "\\\\",
        "\\'",
        "{x}",
        "{{x}}",
        "$x",
        "%",
        "_",
        "a%",
        "a_b",
        "a*b",
    ),
    *(
        '" or tenant != "',
        '"] or true or domain in ["',
        "x' OR '1'='1",
        "*:*",
        "a AND b",
        "tenant:t",
    ),
    *(
        "\x00",
        "a\x00b",
        "a",
        "\n",
        "\r\n",
        "\t",
        "\x1b[31m",
        "\x7f",
        "\u2028",
        "\\n",
        "\\u0041",
        "A",
    ),
    *(
        "\\x41",
        "\\101",
        "🍜",
        "👨\u200d👩",
        "\u202eabc",
        "\u200f",
        "e\u0301",
        "é",
        "中文",
        "𠮷",
        "null",
        "true",
    ),
    *("1", "--", "/*", "#", "../x", "x" * 60),
]


def unit_vector(*values: float) -> Vector:
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[: len(values)] = values
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


class SearchIndexSuite(Generic[Index]):
    """What both kinds of index must do."""

    def a_row(self, chunk_id: str, **fields: Any) -> IndexRow:
        """A row that `found` finds."""
        raise NotImplementedError

    async def found(self, index: Index, name: str) -> set[str]:
        """The ids of the chunks of tenant `t` that one search finds."""
        raise NotImplementedError

    async def test_what_is_dropped_is_gone_and_does_not_come_back_by_itself(
        self, index: Index, name: str
    ) -> None:
        other = f"{name}_other"
        await index.ensure(other)
        await index.upsert(name, [self.a_row("c")])
        await index.upsert(other, [self.a_row("c")])
        for _ in range(2):  # a repeat finds nothing
            await index.drop(other)
            assert not await index.exists(other)
        for write in (
            index.upsert(other, [self.a_row("late")]),
            index.delete(other, "t", "d1"),
        ):
            with pytest.raises(TransientError):
                await write
        assert not await index.exists(other)
        assert await index.count(name, "t") == 1
        await index.ensure(other)
        assert await index.count(other, "t") == 0
        await index.drop(other)

    async def test_delete_drops_the_given_generations(self, index: Index, name: str) -> None:
        rows = [self.a_row(f"g{i}", generation=i) for i in (1, 2, 3)]
        await index.upsert(name, [*rows, self.a_row("other", document_id="d2")])
        await index.delete(name, "t", "d1", generations=range(2))
        assert await self.found(index, name) == {"g2", "g3", "other"}
        await index.delete(name, "t", "d1")
        assert await index.count(name, "t", "d1") == 0
        assert await index.count(name, "t") == 1


class VectorIndexSuite(SearchIndexSuite[VectorIndex]):
    @pytest.fixture
    def name(self) -> str:
        return "vectors_v1"

    def a_row(self, chunk_id: str, **fields: Any) -> IndexRow:
        return self._row(chunk_id, 1, **fields)

    async def found(self, index: VectorIndex, name: str) -> set[str]:
        return {hit.chunk_id for hit in await index.search(name, "t", unit_vector(1), 10)}

    async def test_nearest_first_with_cosine_as_score(self, index: VectorIndex, name: str) -> None:
        await index.upsert(name, [self._row("far", 0, 1), self._row("near", 1, 0.1)])
        hits = await index.search(name, "t", unit_vector(1), 10)
        assert [hit.chunk_id for hit in hits] == ["near", "far"]
        assert hits[0].score == pytest.approx(1 / np.sqrt(1.01), abs=1e-4)
        assert (hits[0].document_id, hits[0].generation) == ("d1", 1)

    async def test_a_repeat_overwrites(self, index: VectorIndex, name: str) -> None:
        await index.upsert(name, [self._row("c", 0, 1)])
        await index.upsert(name, [self._row("c", 1, 0)])
        hits = await index.search(name, "t", unit_vector(1), 10)
        assert [round(hit.score, 4) for hit in hits] == [1.0]
        assert await index.count(name, "t") == 1

    async def test_tenants_never_meet(self, index: VectorIndex, name: str) -> None:
        await index.upsert(name, [self._row("c", 1, tenant=AWKWARD), self._row("c", 1)])
        await index.delete(name, "t", "d1")
        assert await index.search(name, "t", unit_vector(1), 10) == []
        assert [h.chunk_id for h in await index.search(name, AWKWARD, unit_vector(1), 10)] == ["c"]

    async def test_domains_narrow_the_search(self, index: VectorIndex, name: str) -> None:
        rows = [self._row("hr", 1, domain="hr"), self._row("it", 1, domain=AWKWARD)]
        await index.upsert(name, rows)
        found = await index.search(name, "t", unit_vector(1), 10, domains=[AWKWARD, "none"])
        assert [hit.chunk_id for hit in found] == ["it"]

    async def test_documents_narrow_the_search(self, index: VectorIndex, name: str) -> None:
        rows = [self._row(f"c{i}", 1, i / 100, document_id=f"d{i}") for i in range(9)]
        await index.upsert(name, [*rows, self._row("x", 1, document_id=AWKWARD)])
        query, wanted = unit_vector(1), ["d7", "d3", AWKWARD, "none"]
        found = await index.search(name, "t", query, 10, documents=wanted)
        assert [hit.chunk_id for hit in found] == ["x", "c3", "c7"]
        assert await index.search(name, "t", query, 10, documents=["none"]) == []

    async def test_entries_name_every_row_of_a_tenant_or_document(
        self, index: VectorIndex, name: str
    ) -> None:
        rows = [self._row(f"d1.2.c{i}", 1, generation=2) for i in range(3)]
        other = self._row("d2.1.c0", 1, document_id="d2")
        await index.upsert(name, [*rows, other, self._row("d1.1.c9", 1, tenant="u")])
        expected = [("d1.2.c0", "d1", 2), ("d1.2.c1", "d1", 2), ("d1.2.c2", "d1", 2)]
        assert await listed(index, name, "t") == [*expected, ("d2.1.c0", "d2", 1)]
        assert await listed(index, name, "t", "d1") == expected
        assert await listed(index, name, "u") == [("d1.1.c9", "d1", 1)]
        assert await listed(index, name, "nobody") == []

    async def test_every_value_means_itself(self, index: VectorIndex, name: str) -> None:
        rows = []  # of different places: a graph of equal vectors does not lead to each of them
        for at, value in enumerate(HOSTILE):
            rows += [
                self._row(f"t{at}", 1, at / 100, tenant=value),
                self._row(f"d{at}", 1, at / 100, domain=value, tenant="domains"),
                self._row(f"i{at}", 1, at / 100, document_id=value, tenant="ids"),
            ]
        await index.upsert(name, rows)
        query = unit_vector(1)
        for at, value in enumerate(HOSTILE):
            of_tenant = await index.search(name, value, query, 99)
            of_domain = await index.search(name, "domains", query, 99, domains=[value])
            found = [[hit.chunk_id for hit in hits] for hits in (of_tenant, of_domain)]
            assert found == [[f"t{at}"], [f"d{at}"]], value
            assert [entry[0] for entry in await listed(index, name, "ids", value)] == [f"i{at}"]
            assert await index.count(name, "ids", value) == 1
        await index.delete(name, "ids", '"')
        await index.delete(name, '" or tenant != "', "d1")
        assert await index.count(name, "ids") == len(HOSTILE) - 1
        assert await index.count(name, "domains") == len(HOSTILE)

    async def test_the_limit_holds(self, index: VectorIndex, name: str) -> None:
        await index.upsert(name, [self._row(f"c{i}", 1, i / 100) for i in range(20)])
        hits = await index.search(name, "t", unit_vector(1), 3)
        assert [hit.chunk_id for hit in hits] == ["c0", "c1", "c2"]
        assert await index.search(name, "t", unit_vector(1), 0) == []
        assert len(await index.search(name, "t", unit_vector(1), MAX_ROWS)) == 20

    @staticmethod
    def _row(
        chunk_id: str,
        *vector: float,
        tenant: str = "t",
        document_id: str = "d1",
        generation: int = 1,
        domain: str = "",
    ) -> IndexRow:
        return IndexRow(
            chunk_id, tenant, document_id, generation, domain, vector=unit_vector(*vector)
        )


class KeywordIndexSuite(SearchIndexSuite[KeywordIndex]):
    @pytest.fixture
    def name(self) -> str:
        return "keywords_v1"

    def a_row(self, chunk_id: str, **fields: Any) -> IndexRow:
        return row(chunk_id, "text", **fields)

    async def found(self, index: KeywordIndex, name: str) -> set[str]:
        return {hit.chunk_id for hit in await index.search(name, "t", ["text"], 10)}

    @pytest.mark.parametrize(
        ("text", "question"),
        [
            ("差旅费用的报销上限是每天500元", "出差报销上限"),
            ("Travel expenses are reimbursed up to 500", "travelling expense"),
            ("订单 A-2031 已发货", "a2031"),
            ("依据 GB/T 19001 标准执行", "GB/T19001"),
            ("合同总额为20,000元", "20000"),
            ("本机采用RTX-4090显卡", "RTX4090显卡"),
            ("本机采用RTX-4090显卡", "rtx 4090"),
            ("安装失败：ERR_0x80070005", "0x80070005"),
            ("第十二条 员工须提交发票", "第十二条"),
            ("第十二条 员工须提交发票", "第12条"),
            ("由王小明负责验收", "王小明"),
            ("由欧阳娜娜·买买提签字", "买买提"),
            ("Signed by José Müller", "jose muller"),
            ("采购单号 PO-2024-000123", "PO2024000123"),
            ("服务器地址 192.168.10.7", "192.168.10.7"),
            ("支持Wi-Fi与5G网络", "WiFi 5G"),
            ("请用C++实现", "c++"),
        ],
    )
    async def test_chinese_english_and_codes_are_found(
        self, index: KeywordIndex, name: str, text: str, question: str
    ) -> None:
        await index.upsert(name, [row("right", text), row("wrong", "无关 unrelated 内容")])
        hits = await index.search(name, "t", analyse(question), 10)
        assert [hit.chunk_id for hit in hits] == ["right"]

    async def test_rare_terms_weigh_more(self, index: KeywordIndex, name: str) -> None:
        rows = [row(f"c{i}", f"common words {i}") for i in range(10)]
        await index.upsert(name, [*rows, row("rare", "common zebra")])
        hits = await index.search(name, "t", analyse("common zebra"), 3)
        assert hits[0].chunk_id == "rare"
        assert hits[0].score > 2 * hits[1].score

    async def test_a_repeat_overwrites(self, index: KeywordIndex, name: str) -> None:
        await index.upsert(name, [row("c", "old wording")])
        await index.upsert(name, [row("c", "new wording")])
        assert await index.search(name, "t", analyse("old"), 10) == []
        assert len(await index.search(name, "t", analyse("wording"), 10)) == 1

    async def test_tenants_never_meet(self, index: KeywordIndex, name: str) -> None:
        await index.upsert(name, [row("c", "secret", tenant=AWKWARD), row("c", "secret")])
        await index.delete(name, "t", "d1")
        assert await index.search(name, "t", ["secret"], 10) == []
        assert len(await index.search(name, AWKWARD, ["secret"], 10)) == 1
        assert (await index.frequencies(name, "t", ["secret"])).rows == {"secret": 0}

    async def test_domains_narrow_the_search(self, index: KeywordIndex, name: str) -> None:
        await index.upsert(name, [row("hr", "leave", domain="hr"), row("it", "leave", domain="it")])
        hits = await index.search(name, "t", ["leav"], 10, domains=["it", "none"])
        assert [hit.chunk_id for hit in hits] == ["it"]

    async def test_documents_narrow_the_search(self, index: KeywordIndex, name: str) -> None:
        rows = [row(f"c{i}", "leave", document_id=f"d{i}") for i in range(9)]
        await index.upsert(name, [*rows, row("x", "leave leave", document_id=AWKWARD)])
        wanted = ["d7", "d3", AWKWARD, "none"]
        found = await index.search(name, "t", ["leav"], 10, documents=wanted)
        assert {hit.chunk_id for hit in found} == {"x", "c3", "c7"}
        assert await index.search(name, "t", ["leav"], 10, documents=["none"]) == []

    async def test_frequencies_count_rows_not_occurrences(
        self, index: KeywordIndex, name: str
    ) -> None:
        await index.upsert(name, [row("a", "apple apple pear"), row("b", "apple")])
        known = await index.frequencies(name, "t", ["appl", "pear", "plum"])
        assert (known.total, dict(known.rows)) == (2, {"appl": 2, "pear": 1, "plum": 0})

    async def test_entries_name_every_row_of_a_tenant_or_document(
        self, index: KeywordIndex, name: str
    ) -> None:
        rows = [row(f"d1.2.c{i}", f"text {i}", generation=2) for i in range(3)]
        other = row("d2.1.c0", "text", document_id="d2")
        await index.upsert(name, [*rows, other, row("d1.1.c9", "", tenant=AWKWARD)])
        expected = [("d1.2.c0", "d1", 2), ("d1.2.c1", "d1", 2), ("d1.2.c2", "d1", 2)]
        assert await listed(index, name, "t") == [*expected, ("d2.1.c0", "d2", 1)]
        assert await listed(index, name, "t", "d1") == expected
        assert await listed(index, name, AWKWARD) == [("d1.1.c9", "d1", 1)]
        assert await listed(index, name, "nobody") == []

    async def test_every_value_means_itself(self, index: KeywordIndex, name: str) -> None:
        rows = []
        for at, value in enumerate(HOSTILE):
            rows += [
                row(f"t{at}", "text", tenant=value),
                row(f"d{at}", "text", domain=value, tenant="domains"),
                row(f"i{at}", "text", document_id=value, tenant="ids"),
                IndexRow(f"w{at}", "terms", "d1", 1, "", terms=[value]),
            ]
        await index.upsert(name, rows)
        for at, value in enumerate(HOSTILE):
            of_tenant = await index.search(name, value, ["text"], 99)
            of_domain = await index.search(name, "domains", ["text"], 99, domains=[value])
            of_term = await index.search(name, "terms", [value], 99)
            found = [[hit.chunk_id for hit in hits] for hits in (of_tenant, of_domain, of_term)]
            assert found == [[f"t{at}"], [f"d{at}"], [f"w{at}"]], value
            assert [entry[0] for entry in await listed(index, name, "ids", value)] == [f"i{at}"]
            assert await index.count(name, "ids", value) == 1
            assert (await index.frequencies(name, "terms", [value])).rows == {value: 1}
        await index.delete(name, "ids", "*:*")
        await index.delete(name, "*:*", "d1")
        assert await index.count(name, "ids") == len(HOSTILE) - 1
        assert await index.count(name, "domains") == len(HOSTILE)

    async def test_the_limit_holds(self, index: KeywordIndex, name: str) -> None:
        await index.upsert(name, [row(f"c{i}", "text") for i in range(20)])
        found = [len(await index.search(name, "t", ["text"], n)) for n in (0, 3, MAX_ROWS)]
        assert found == [0, 3, 20]

    async def test_no_terms_find_nothing(self, index: KeywordIndex, name: str) -> None:
        await index.upsert(name, [row("c", "text")])
        assert await index.search(name, "t", [], 10) == []


async def listed(
    index: VectorIndex | KeywordIndex, name: str, tenant: str, document_id: str | None = None
) -> list[tuple[str, str, int]]:
    pages = index.entries(name, tenant, document_id)
    found = [entry async for page in pages for entry in page]
    return sorted((entry.chunk_id, entry.document_id, entry.generation) for entry in found)


def row(
    chunk_id: str,
    text: str,
    *,
    tenant: str = "t",
    document_id: str = "d1",
    generation: int = 1,
    domain: str = "",
) -> IndexRow:
    terms: Sequence[str] = analyse(text)
    return IndexRow(chunk_id, tenant, document_id, generation, domain, terms=terms)
