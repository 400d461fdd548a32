"""Text to index terms: one analysis for every backend, for Chinese and English alike.

Backends get terms, never text, so a question and a document are always cut the same way and no
server-side analyser can be missing, different or switched off.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import rjieba
import snowballstemmer

from libs.documents.numerals import DIGITS, TENS
from libs.documents.stop_words import CHINESE, ENGLISH, LINKING_CHARACTERS

VERSION: Final = 1  # raise it when the same text gives other terms: indexes are to be built anew
MAX_TERM_CHARS: Final = 64

_HAN: Final = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA_HANGUL: Final = "\u3040-\u30ff\uac00-\ud7af"
# In order of preference: Han, kana or hangul, numbers with their separators, everything else.
_TOKEN: Final = re.compile(
    rf"(?P<han>[{_HAN}]+)"
    rf"|(?P<syllables>[{_KANA_HANGUL}]+)"
    r"|(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![a-z0-9])|\d+(?:\.\d+)+(?![a-z0-9]))"
    rf"|(?P<word>[^\W_{_HAN}{_KANA_HANGUL}]+(?:[-_./:@'&][^\W_{_HAN}{_KANA_HANGUL}]+)*[+#]*)"
)
_PART: Final = re.compile(r"[^\W\d_]+|\d+")
# 第十二条 and 第12条 are one article.
_NUMBERED: Final = re.compile("第([零〇一二三四五六七八九十百千两]{1,7})(?=[条章节款项编页届期卷])")
_POSSESSIVE: Final = re.compile(r"'s?\b")
_stemmer: Final = snowballstemmer.stemmer("english")


def analyse(text: str) -> list[str]:
    """The index terms of `text`, in reading order, repeats kept (BM25 counts them).

    - NFKC and lower case first, so full-width `２０，０００` is `20,000`.
    - Han runs give their words (search mode) and the bigrams that are not already words, so a name
      the dictionary does not know is still found; bigrams with a particle in them are noise.
    - Numbers of articles and chapters in characters also give their digits (`第十二条`: `12`).
    - Latin words are stemmed (English Snowball), and those with accents also give the form without;
      other scripts are kept as they are.
    - Numbers lose their thousands separators: `20,000` and `20000` are one term.
    - Mixed terms such as `A-2031` or `GB/T 19001` give the whole without separators (`a2031`,
      `gbt`) and their parts, so every usual spelling meets.
    - Stop words of both languages are dropped.

    Pure and deterministic; a term has at most 64 characters.
    """
    terms: list[str] = []
    for match in _TOKEN.finditer(unicodedata.normalize("NFKC", text).lower()):
        token = match.group()
        match match.lastgroup:
            case "han":
                terms.extend(_han_terms(token))
            case "syllables":
                terms.extend(_bigrams(token) or [token])
            case "number":
                terms.append(token.replace(",", ""))
            case _:
                terms.extend(_word_terms(token))
    return [term for term in terms if len(term) <= MAX_TERM_CHARS]


PRIOR_ROWS: Final = 50


def inverse_document_frequency(total: int, containing: int) -> float:
    """BM25's IDF, in nats, never negative.

    `containing` of `total` rows hold the term; a term nobody holds has the highest weight.
    """
    return math.log1p((total - containing + 0.5) / (containing + 0.5))


def term_weights(terms: Sequence[str], total: int, counts: Mapping[str, int]) -> dict[str, float]:
    """Each distinct term's IDF in a collection of `total` rows; `counts` may miss terms.

    The collection counts as if it had `PRIOR_ROWS` more, one of them with the term: a handful of
    rows says nothing about which terms are rare, and there all then weigh nearly the same.
    """
    return {
        term: inverse_document_frequency(total + PRIOR_ROWS, min(counts.get(term, 0), total) + 1)
        for term in terms
    }


def covered_share(weights: Mapping[str, float], present: frozenset[str] | set[str]) -> float:
    """Share of the total weight that belongs to terms in `present`; 0.0 without any weight."""
    total = sum(weights.values())
    if total <= 0.0:
        return 0.0
    return sum(weight for term, weight in weights.items() if term in present) / total


def has_han(text: str) -> bool:
    return _HAN_CHARACTER.search(text) is not None


_HAN_CHARACTER: Final = re.compile(f"[{_HAN}]")


def _han_terms(run: str) -> Iterator[str]:
    words = rjieba.cut_for_search(run)
    known = set(words)
    yield from (word for word in words if word not in CHINESE)
    yield from (
        pair for pair in _bigrams(run) if pair not in known and LINKING_CHARACTERS.isdisjoint(pair)
    )
    yield from (str(_number(found.group(1))) for found in _NUMBERED.finditer(run))


def _number(characters: str) -> int:
    """`十二`: 12, `一百零三`: 103, `二〇二四`: 2024."""
    if TENS.keys().isdisjoint(characters):
        return int("".join(str(DIGITS[character]) for character in characters))
    total, digit = 0, 0
    for character in characters:
        if (unit := TENS.get(character)) is not None:
            total, digit = total + (digit or 1) * unit, 0
        else:
            digit = DIGITS[character]
    return total + digit


def _bigrams(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]


def _word_terms(token: str) -> list[str]:
    token = _POSSESSIVE.sub("", token)
    if token in ENGLISH:
        return []
    parts = _PART.findall(token)
    if len(parts) <= 1:
        return [_stem(form) for form in _forms(token)]
    whole = "".join(character for character in token if character.isalnum() or character in "+#")
    worthy = [part for part in parts if _worth(part)]
    return [whole, *(_stem(form) for part in worthy for form in _forms(part))]


def _forms(word: str) -> list[str]:
    """A word, and how it is typed where there are no accents: `josé`, `jose`."""
    if not word or word.isascii():
        return [word] if word else []
    plain = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
    return [word, plain] if plain != word and plain.isascii() else [word]


def _worth(part: str) -> bool:
    return part not in ENGLISH and (len(part) > 1 or part.isdigit())


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    return str(_stemmer.stemWord(word)) if word.isascii() and word.isalpha() else word
