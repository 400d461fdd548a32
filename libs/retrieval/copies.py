"""Near-copies: the same text in two documents, or in two versions of one, tells nothing twice."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from libs.retrieval.types import Hit

_SPACE: Final = re.compile(r"\W+")
_NUMBER: Final = re.compile(r"\d+")
_SHINGLE: Final = 4  # characters


class _Print:
    """What two texts are compared by: pieces of a few characters, and the numbers as they come."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.numbers = _NUMBER.findall(text)

    @cached_property
    def plain(self) -> str:
        return _SPACE.sub("", self._text.lower())

    @cached_property
    def shingles(self) -> set[str]:
        last = max(1, len(self.plain) - _SHINGLE + 1)
        return {self.plain[at : at + _SHINGLE] for at in range(last)}

    def is_like(self, other: "_Print", share: float) -> bool:
        if self.numbers != other.numbers:
            return False  # rules and rows of a table often differ in nothing but an amount
        if self.plain == other.plain:
            return share <= 1
        if not share <= len(self.plain) / max(1, len(other.plain)) <= 1 / share:
            return False
        common = len(self.shingles & other.shingles)
        either = len(self.shingles) + len(other.shingles) - common
        return common >= share * either


def below_others(
    hits: Sequence[Hit], count: int, share: float, usual: int | None = None
) -> list[Hit]:
    """The hits with near-copies of better ones moved to the end, marked with what they copy.

    Args:
        count: How many different hits are wanted: what follows the last of them stays as it is.
        share: Of the pieces of two texts that must be in both (Jaccard); above 1 nothing is a copy.
        usual: Hits that a list of any length has: their copies stay above what follows them, so
            that a longer list begins with the shorter one.
    """
    kept: list[tuple[Hit, _Print]] = []
    above: list[Hit] = []
    different: list[Hit] = []
    copies: list[Hit] = []
    at = 0
    for at, hit in enumerate(hits, start=1):
        if at - 1 == usual:
            above, different, copies = [*different, *copies], [], []
        printed = _Print(hit.text)
        same = next((other for other, p in kept if p.is_like(printed, share)), None)
        if same is not None:
            copies.append(replace(hit, duplicate_of=same.chunk_id))
        else:
            kept.append((hit, printed))
            different.append(hit)
        if len(kept) == count:
            break
    return [*above, *different, *hits[at:], *copies]
