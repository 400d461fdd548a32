"""What a text defines: "报销是指…", "“Remote work” means …"."""

import re
from collections.abc import Iterator
from typing import Final

from libs.documents.graph.names import Kind, Name, key_of

_ZH: Final = re.compile(
    r"(?:^|[。；;\n、)]|[：:])[ ]{0,4}(?:第[一二三四五六七八九十百\d]{1,5}[条款项][ ]{0,4})?"
    r"(?:本(?:办法|制度|规定|法|条例|合同|协议|政策|细则)(?:中)?所?称的?|所谓)?"
    r"[“\"「]?(?P<term>[^\s，,。；;：:、“”\"「」()]{2,16}?)[”\"」]?(?:\([^()\n]{1,30}\))?[，,]?"
    r"(?:是指|系指|指的是)",
    re.MULTILINE,
)
_EN: Final = re.compile(
    r"(?:[“\"](?P<quoted>[^“”\"\n]{2,40})[”\"]|"
    r"(?:^|[.;:)]\s)[ ]{0,4}(?:(?:An?|The)\s)?(?P<bare>[A-Z][\w-]{1,30}(?:[ "
    r"][a-z][\w-]{1,30}){0,2}))"
    r"[ ](?:means|shall[ ]mean|refers[ ]to|is[ ]defined[ ]as|are[ ]defined[ ]as)\b",
    re.MULTILINE,
)
_NO_TERM_ZH: Final = re.compile(r"^[这那此其它他她本该]|[的了]$|^(?:一般|主要|通常|具体|也就|就)")
_NO_TERM_EN: Final = frozenset(
    [
        "this",
        "that",
        "it",
        "which",
        "what",
        "there",
        "these",
        "those",
        "he",
        "she",
        "they",
        "we",
        "i",
        "and",
        "but",
        "by",
        "or",
        "if",
        "in",
        "for",
    ]
)


def definitions(text: str) -> Iterator[Name]:
    """The terms that `text` (as `plain_width` makes it) defines, in order."""
    for match in _ZH.finditer(text):
        if not _NO_TERM_ZH.search(match["term"]):
            yield Name(Kind.TERM, key_of(match["term"]), *match.span("term"))
    for match in _EN.finditer(text):
        group = "quoted" if match["quoted"] else "bare"
        if match[group].split()[0].casefold() not in _NO_TERM_EN:
            yield Name(Kind.TERM, key_of(match[group]), *match.span(group))
