"""Ambiguity: a question with too little in it is asked back, in the user's language."""

import re

from libs.documents.language import language_of
from services.orchestrator.domain.rewrite import has_anaphor, is_fragment
from services.orchestrator.domain.subject import names_in
from services.orchestrator.domain.wording import GENERIC, numbers, specific_words, words

_SELF_CONTAINED = re.compile('《|“|"')
_ANSWER_WORDS = 8
_ASKS = re.compile(
    r"[?？]\s*$|^(?:what|when|where|which|who|why|how|is|are|was|were|does|do|did|can)\b|"
    "什么|怎么|如何|为什么|多少|哪|谁|吗$|是否",
    re.IGNORECASE,
)


def clarification(question: str) -> str | None:
    """What to ask back about a question that stays unclear after the rewrite; None: it is clear.

    Unclear is a question without any content word, one whose only content asks for an attribute
    of nothing ("What is the limit?"), and one about a pronoun that nothing explains.
    """
    content, specific = words(question), specific_words(question)
    if _SELF_CONTAINED.search(question) or numbers(question) or names_in(question):
        return None
    if not content:
        return _ask_open(question)
    if not specific and len(content) <= 2:
        return _ask_which(question, next((w for w in content if w in GENERIC), content[0]))
    if len(specific) <= 1 and has_anaphor(question):
        return _ask_referent(question)
    return None


def completes(answer: str, pending: str) -> str | None:
    """The pending question joined with the user's answer to it; None: it is a new question."""
    if not words(answer):
        return None
    is_question = _ASKS.search(answer.strip()) is not None and not is_fragment(answer)
    if is_question and len(specific_words(answer)) >= 1:
        return None
    if len(words(answer)) > _ANSWER_WORDS and len(answer) > 120:
        return None
    stem = pending.rstrip(" ?？.。!！")
    addition = answer.strip().rstrip(" ?？.。!！")
    return f"{stem}（{addition}）？" if language_of(pending) == "zh" else f"{stem} ({addition})?"


def _ask_open(question: str) -> str:
    if language_of(question) == "zh":
        return "请问您想了解什么？请补充具体的对象，例如产品、文档、部门或时间。"
    return "What would you like to know? Please name the product, document, department or period."


def _ask_which(question: str, attribute: str) -> str:
    if language_of(question) == "zh":
        return f"请问您想了解的是哪个产品、文档或事项的“{attribute}”？"
    return f'Which product, document or topic do you mean by "{attribute}"?'


def _ask_referent(question: str) -> str:
    if language_of(question) == "zh":
        return "请问您指的是什么？请说出具体的名称，我就能继续查找。"
    return "What do you refer to? Please give its name, then I can look it up."
