"""Words that make a bound of the value they stand before or behind, in Chinese and English."""

import re
from collections.abc import Iterable
from typing import Final

_ABOVE, _FROM, _BELOW, _UP_TO = ">", ">=", "<", "<="

_NOT_ZH: Final = (
    r"(?:不(?:得|能|可|应当?|宜|许|准|会|要|必|再|需要?|允许)?|[未没]|没有|未能|严禁|禁止)再?"
)
_NOT_EN: Final = (
    r"(?:(?:do|does|did|must|may|shall|should|can|will)[ ])?"
    r"(?:not|cannot|never|without|[a-z]{2,6}n['’]t)[ ](?:be[ ]|to[ ](?:be[ ])?)?"
)
_MORE: Final = r"(?:more|greater|higher|larger)[ ]than"
_LESS: Final = r"(?:less|fewer|lower|smaller)[ ]than"
_OR: Final = r"(?:或者?|及|和|、)?"

# The first row that matches counts, so what is denied stands before what denies it, and longest
# first within a row; 以上, 以下 and 以内 include the number, 超过, 不足 and 以外 do not
# (Civil Code of China, article 1259).
_BEFORE: Final = [
    (_BELOW, rf"{_NOT_ZH}达到?|达不到|(?:不|未|没有?)满|[不未]及"),
    (
        _UP_TO,
        rf"{_NOT_ZH}(?:超过|超出|高于|大于|多于)|至多|最多|最高|上限[为是]?|"
        rf"(?:小于|少于|低于){_OR}等于|等于{_OR}(?:小于|少于|低于)|"
        rf"{_NOT_EN}(?:exceed(?:s|ed|ing)?|in[ ]excess[ ]of|over|above|beyond|{_MORE})|"
        rf"no[ ]{_MORE}|{_LESS}[ ]or[ ]equal[ ]to|equal[ ]to[ ]or[ ]{_LESS}|at[ ]most|"
        r"up[ ]to(?:[ ]and[ ]including)?|(?:a[ ])?maximum[ ]of|limited[ ]to|within|<=|≤",
    ),
    (
        _FROM,
        rf"{_NOT_ZH}(?:低于|少于|小于)|不[低少]于|至少|最低|最少|"
        rf"(?:大于|多于|高于|超过){_OR}等于|(?:等于|达到){_OR}(?:大于|多于|高于|超过)|"
        r"达到|达|满|"
        rf"{_NOT_EN}(?:below|under|{_LESS})|no[ ]{_LESS}|at[ ]least|"
        rf"{_MORE}[ ]or[ ]equal[ ]to|equal[ ]to[ ]or[ ]{_MORE}|(?:equals?|meets?)[ ]or[ ]exceeds?|"
        r"(?:a[ ])?minimum[ ]of|starting[ ](?:at|from)|>=|≥",
    ),
    (
        _ABOVE,
        r"超过|超出|高于|大于|多于|逾|"
        rf"{_MORE}|exceed(?:s|ed|ing)?|in[ ]excess[ ]of|above|over|beyond|>",
    ),
    (_BELOW, rf"低于|少于|小于|不足|不到|{_LESS}|below|under|<"),
]
_DATE_BEFORE: Final = [
    (
        _FROM,
        rf"{_NOT_ZH}早于|{_NOT_EN}(?:before|until|earlier[ ]than|prior[ ]to)|"
        r"no[ ](?:earlier|sooner)[ ]than|"
        r"自|从|on[ ]or[ ]after|since|from|as[ ]of|effective(?:[ ](?:from|on))?|starting",
    ),
    (
        _UP_TO,
        rf"{_NOT_ZH}[晚迟]于|{_NOT_EN}(?:after|later[ ]than)|"
        r"截至|截止到?|直?至|直?到|on[ ]or[ ]before|until|through|by|no[ ]later[ ]than",
    ),
    (_ABOVE, r"[晚迟]于|after|later[ ]than"),
    (_BELOW, r"早于|before|earlier[ ]than|prior[ ]to"),
]
_FILLER: Final = (
    r"[ ]?(?:了|过|为|约|人民币|(?:a[ ]|the[ ])?(?:total|amount|sum|value)(?:[ ]of)?)?[ ]?"
    r"(?P<with>\(含\))?(?:rmb|cny)?[ ]?$"
)
_AFTER: Final = [
    (
        _FROM,
        r"[ ]?(?:及|或|和)?以上|起(?!草|诉|源|点)|[ ]?\+|[ ](?:or|and)[ ](?:more|above|over|"
        r"higher)\b(?![ ]than)",
    ),
    (
        _UP_TO,
        r"[ ]?(?:及|或|和)?(?:以下|以内|之内)|内(?!部)|[ ](?:or|and)[ ](?:less|below|under|fewer|"
        r"lower)\b(?![ ]than)",
    ),
    (_ABOVE, r"[ ]?(?:以外|之外)"),
]
_DATE_AFTER: Final = [
    (_FROM, r"(?:起|以来|开始)|[ ](?:or|and)[ ](?:later|after)\b|[ ]onwards?\b"),
    (_BELOW, r"(?:以|之)?前|[ ](?:or|and)[ ](?:earlier|before)\b"),
    (_ABOVE, r"(?:以|之)?后"),
]
INCLUSIVE: Final = re.compile(
    r"[ ]?(?:\((?P<zh>不?含)[^()]{0,4}\)|\((?P<en>inclusive|included|exclusive|excluded)\))"
)


def _before(table: Iterable[tuple[str, str]]) -> list[tuple[str, re.Pattern[str]]]:
    return [
        (sign, re.compile(rf"(?:(?<![A-Za-z])(?:{words})){_FILLER}", re.IGNORECASE))
        for sign, words in table
    ]


def _after(table: Iterable[tuple[str, str]]) -> list[tuple[str, re.Pattern[str]]]:
    return [(sign, re.compile(words, re.IGNORECASE)) for sign, words in table]


NUMBERS = (_before(_BEFORE), _after(_AFTER))
DATES = (_before(_DATE_BEFORE), _after(_DATE_AFTER))


def excludes(mark: re.Match[str] | None) -> bool:
    if mark is None:
        return False
    return mark["zh"] == "不含" or (mark["en"] or "").lower().startswith("ex")
