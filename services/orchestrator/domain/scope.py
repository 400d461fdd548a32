"""Knowledge domains: searching is narrowed only where the question itself says so."""

import re
from collections.abc import Sequence

from libs.documents.language import HAN

_HAN_NAME = re.compile(f"[{HAN}]")


def named_domains(question: str, domains: Sequence[str]) -> list[str]:
    """The tenant's domains that a question names as a place to look in, in the tenant's order.

    A domain's name alone is often just a word of the question ("finance", "law"), so it counts
    only with a cue: "in/from/according to the X (documents)", "X documents", "在X里", "根据X".
    """
    return [domain for domain in domains if domain.strip() and _named(question, domain.strip())]


def _named(question: str, domain: str) -> bool:
    name = re.escape(domain)
    if _HAN_NAME.search(domain):
        cue = (
            f"(?:在|从|根据|按照|按|查|查阅|参考)[《“]?{name}|"
            f"{name}[》”]?(?:里|中|内|上|文档|资料|手册|知识库|领域)|《{name}》"
        )
    else:
        cue = (
            r"\b(?:in|from|within|per|according to|using|search|check)\s+"
            rf"(?:the\s+|our\s+)?[\"“]?{name}\b|"
            rf"\b{name}[\"”]?\s+(?:documents?|docs?|domain|files?|library|handbook|manual)\b|"
            rf"(?:在|从|根据)\s*{name}"
        )
    return re.search(cue, question, re.IGNORECASE) is not None
