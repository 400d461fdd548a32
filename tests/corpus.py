"""Made-up documents in English and Chinese: as many as wanted, each with one fact to ask for."""

import random
from dataclasses import dataclass

_TOWNS = ["Lisbon", "Oslo", "Porto", "Ghent", "Turku", "Basel", "Graz", "Leiden", "Cork", "Lugano"]
_THINGS = ["archive", "workshop", "canteen", "garage", "laboratory", "library", "warehouse"]
_VERBS = ["records", "reviews", "delivers", "measures", "repairs", "approves", "collects"]
_NOUNS = ["orders", "invoices", "samples", "reports", "contracts", "machines", "forms", "budgets"]
_TOWNS_ZH = ["杭州", "成都", "厦门", "西安", "青岛", "长沙", "昆明", "大连"]
_THINGS_ZH = ["档案室", "维修车间", "食堂", "实验室", "图书馆", "仓库", "培训中心"]
_VERBS_ZH = ["登记", "审核", "交付", "测量", "维修", "批准", "收集"]
_NOUNS_ZH = ["订单", "发票", "样品", "报告", "合同", "设备", "表格", "预算"]


@dataclass(frozen=True, slots=True)
class MadeDocument:
    name: str
    text: str
    question: str
    answer: str


def make_documents(count: int, *, seed: int = 1, characters: int = 3000) -> list[MadeDocument]:
    """`count` documents, every second one Chinese, of about `characters` characters each."""
    rng = random.Random(seed)  # noqa: S311 - test data
    return [
        _chinese(i, rng, characters) if i % 2 else _english(i, rng, characters)
        for i in range(count)
    ]


def _english(number: int, rng: random.Random, characters: int) -> MadeDocument:
    place = f"{rng.choice(_TOWNS)} {rng.choice(_THINGS)} {number}"
    code = str(rng.randrange(10_000, 99_999))
    fact = f"The door code of the {place} is {code}."
    sentences = [fact]
    while sum(map(len, sentences)) < characters:
        sentences.append(
            f"The {rng.choice(_THINGS)} in {rng.choice(_TOWNS)} {rng.choice(_VERBS)} "
            f"{rng.randrange(2, 900)} {rng.choice(_NOUNS)} and {rng.choice(_VERBS)} "
            f"{rng.choice(_NOUNS)} every {rng.randrange(2, 30)} days."
        )
    rng.shuffle(sentences)
    body = "\n\n".join(" ".join(sentences[i : i + 6]) for i in range(0, len(sentences), 6))
    question = f"What is the door code of the {place}?"
    return MadeDocument(f"handbook-{number}.md", f"# Handbook {place}\n\n{body}\n", question, code)


def _chinese(number: int, rng: random.Random, characters: int) -> MadeDocument:
    place = f"{rng.choice(_TOWNS_ZH)}{rng.choice(_THINGS_ZH)}{number}号"
    code = str(rng.randrange(10_000, 99_999))
    fact = f"{place}的门禁密码是{code}。"
    sentences = [fact]
    while sum(map(len, sentences)) < characters:
        sentences.append(
            f"{rng.choice(_TOWNS_ZH)}的{rng.choice(_THINGS_ZH)}每{rng.randrange(2, 30)}天"
            f"{rng.choice(_VERBS_ZH)}{rng.randrange(2, 900)}份{rng.choice(_NOUNS_ZH)}，"
            f"并{rng.choice(_VERBS_ZH)}{rng.choice(_NOUNS_ZH)}。"
        )
    rng.shuffle(sentences)
    body = "\n\n".join("".join(sentences[i : i + 6]) for i in range(0, len(sentences), 6))
    question = f"{place}的门禁密码是多少？"
    return MadeDocument(f"手册-{number}.md", f"# {place}手册\n\n{body}\n", question, code)
