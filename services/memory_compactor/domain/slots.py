"""Slots: facts the user stated that later questions lean on, such as an order number."""

import re
from collections.abc import Mapping, Sequence

from libs.contracts.memory import Exchange

MAX_SLOTS = 12
_NUMBER = r"([A-Za-z]{0,4}-?\d[\dA-Za-z-]{3,19})"
_IS = r"\s*(?:号码?|编号)?\s*(?:是|为|:|：|=)?\s*#?\s*"
_PATTERNS = {
    "order_number": re.compile(
        rf"(?:订单{_IS}|\border\s*(?:number|no\.?|id)?\s*(?:is|:|=)?\s*#?\s*){_NUMBER}",
        re.IGNORECASE,
    ),
    "ticket_number": re.compile(
        rf"(?:工单{_IS}|\bticket\s*(?:number|no\.?|id)?\s*(?:is|:|=)?\s*#?\s*){_NUMBER}",
        re.IGNORECASE,
    ),
    "amount": re.compile(
        r"(?:金额|预算|总价|总额|\b(?:amount|budget|total)\b)\s*(?:是|为|:|：|=|is|of)?\s*"
        r"([¥￥$€]?\s?\d[\d,]*(?:\.\d+)?\s*(?:万元|亿元|元|yuan|CNY|USD|EUR|dollars|euros)?)",
        re.IGNORECASE,
    ),
}
_CLAUSE_END = re.compile(r"[。！？!?;；\n]|，|,(?!\d)")
_DOUBT = re.compile(r"吗|是不是|是否|^\s*(?:is|are|was|were|does|did|if|whether)\b", re.IGNORECASE)


def update_slots(slots: Mapping[str, str], exchanges: Sequence[Exchange]) -> dict[str, str]:
    """The slots with what the user stated in these exchanges; a later statement replaces.

    Only the user's words count, and a clause that asks ("is the amount 500?") states nothing.
    """
    found = dict(slots)
    for exchange in exchanges:
        for clause in _CLAUSE_END.split(exchange.question):
            if _DOUBT.search(clause):
                continue
            for name, pattern in _PATTERNS.items():
                match = pattern.search(clause)
                if match:
                    found.pop(name, None)
                    found[name] = match.group(1).strip()
    return dict(list(found.items())[-MAX_SLOTS:])
