"""What a question is about: the phrase a later pronoun stands for."""

import re

from libs.documents.language import HAN, language_of
from services.orchestrator.domain.wording import words

_QUOTED = re.compile(r"《[^》]{1,60}》|“([^”]{2,60})”|\"([^\"]{2,60})\"|「([^」]{2,60})」")
_MONTH = (
    "January|February|March|April|May|June|July|August|September|October|November|December|"
    "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec|Q[1-4]|H[12]|FY"
)
_LEAD = (
    "What|When|Where|Which|Who|Whom|Whose|Why|How|Is|Are|Was|Were|Do|Does|Did|Can|Could|Will|Would|"
    "Should|Has|Have|Had|In|On|At|For|From|By|Of|The|A|An|And|Or|But|Tell|Give|Show|List|Please|I|"
    "According|To|Explain|Describe|If|During|After|Before|It|They|He|She|Its|Their|His|Her"
)
_NAME_WORD = r"[A-Z][\w&’'-]*(?:\.(?=\w|\s+[A-Za-z]|[?!]))?\w*"
_PROPER = re.compile(
    rf"(?!(?:{_LEAD}|{_MONTH})\b){_NAME_WORD}"
    rf"(?:\s+(?:(?:of|the|and|for|de|&)\s+)*(?!(?:{_MONTH})\b)(?:{_NAME_WORD}|\d+\b))*"
)
_DETERMINED = re.compile(
    r"\b(?:the|a|an|my|our|your)\s+((?:[a-z][\w-]*\s+){0,3}?[a-z][\w-]*)"
    r"(?=\s*(?:[?,.;!]|$|\b(?:of|for|in|on|at|to|by|from|with|is|are|was|were|has|have|do|does|did|"
    r"can|will|that|which|and|or|when|if|during|per)\b))"
)
_POSSESSIVE = re.compile(r"['’]s$")
_ZH_LEAD = re.compile(
    "^(?:请问|请|关于|对于|根据|按照|麻烦|帮我|告诉我|我想知道|我想了解|想知道|想了解|那么|那|什么是|谁是|谁|"
    "如何|怎么样|怎么|怎样|为什么|为何|哪个是|哪些是|哪个|哪些|哪位|何时|什么时候|是否|有没有|能否|能不能|可以)+"
)
_ZH_END = re.compile(
    "的|是|为什么|有哪|有多|有没有|有什么|什么|怎么|怎样|如何|何时|哪|多少|多大|多久|多长|谁|吗|呢|几|"
    "于|位于|由|被|在|属于|成立|包括|包含|[，。？！,?!；;]"
)


def subject_of(question: str) -> str | None:
    """The thing a question is about: a quotation, a name, or the phrase it asks after; or None."""
    quoted = _QUOTED.search(question)
    if quoted:
        return next((group for group in quoted.groups() if group), quoted.group())
    return _zh_subject(question) if language_of(question) == "zh" else _en_subject(question)


def names_in(text: str) -> list[str]:
    """English proper names, dates left out, in order."""
    found = (_POSSESSIVE.sub("", match.group()) for match in _PROPER.finditer(text))
    return [name for name in found if len(name) > 1]


def _en_subject(question: str) -> str | None:
    names = names_in(question)
    if names:
        return max(names, key=len)
    phrase = _DETERMINED.search(question)
    return phrase.group().strip() if phrase and words(phrase.group()) else None


def _zh_subject(question: str) -> str | None:
    bare = _ZH_LEAD.sub("", question.strip())
    end = _ZH_END.search(bare, 1)
    subject = (bare[: end.start()] if end else bare).strip(" 了？?。！!，,")
    return subject if len(re.findall(f"[{HAN}A-Za-z0-9]", subject)) >= 2 else None
