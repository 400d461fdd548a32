"""Whether two texts say the same, or nearly, however their files differ.

Only letters and digits count, so line ends, blanks, bullets and page layout do not. How much two
texts share is estimated from the smallest hashes of their shingles: the share of the smallest of
both together that both have estimates the Jaccard similarity of the two sets.
Source: A. Broder, On the resemblance and containment of documents (1997), bottom-k sketches.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

NEAR: Final = 0.8  # estimated similarity from which on texts are called near-duplicates
SHINGLE: Final = 9  # letters: about two English words, a Chinese phrase
SKETCH: Final = 256  # hashes: the estimate's standard error is 0.025 at a similarity of 0.8
KEYS: Final = 8  # of them by which candidates are found; at 0.8 one in 10^5 pairs shares none

_SLICE: Final = 1_000_000
_NO_LETTERS: Final = re.compile(r"[\W_]+")
_BASE: Final = np.uint64(0x9E3779B97F4A7C15)
_Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Likeness:
    """What of a text says which others are like it."""

    text_sha256: str  # of its letters and digits: equal for equal texts
    sketch: bytes  # the smallest hashes, ascending, as little-endian 64-bit words

    @property
    def keys(self) -> list[str]:
        """Texts that are much alike share one of these."""
        return [f"{int(value):016x}" for value in _hashes(self.sketch)[:KEYS]]


def likeness_of(parts: Iterable[str]) -> Likeness | None:
    """Of a text in parts, in order; None: it has no letter. In linear time and bounded memory."""
    digest, tail, sketch = hashlib.sha256(), "", np.empty(0, dtype=np.uint64)
    empty = True
    for letters in _letters(parts):
        empty = False
        digest.update(letters.encode())
        text = tail + letters
        sketch = _smallest(sketch, _shingles(text))
        tail = text[-(SHINGLE - 1) :]
    if empty:
        return None
    if not len(sketch):
        sketch = _shingles(tail.ljust(SHINGLE))
    return Likeness(digest.hexdigest(), sketch.astype("<u8").tobytes())


def similarity(one: bytes, other: bytes) -> float:
    """How much the texts of two sketches share, in [0, 1]."""
    a, b = _hashes(one), _hashes(other)
    together = np.union1d(a, b)[:SKETCH]
    both = np.intersect1d(np.intersect1d(a, b, assume_unique=True), together, assume_unique=True)
    return len(both) / len(together) if len(together) else 0.0


def _letters(parts: Iterable[str]) -> Iterator[str]:
    """The letters and digits alone, in pieces that are neither empty nor huge."""
    held: list[str] = []
    size = 0
    for part in parts:
        for at in range(0, len(part), _SLICE):
            piece = unicodedata.normalize("NFKC", part[at : at + _SLICE]).casefold()
            letters = _NO_LETTERS.sub("", piece)
            held.append(letters)
            size += len(letters)
            if size >= _SLICE:
                yield "".join(held)
                held, size = [], 0
    if size:
        yield "".join(held)


def _shingles(text: str) -> _Hashes:
    """A hash of every run of SHINGLE letters."""
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), dtype="<u4").astype(np.uint64)
    count = len(codes) - SHINGLE + 1
    if count < 1:
        return np.empty(0, dtype=np.uint64)
    value = np.zeros(count, dtype=np.uint64)
    for at in range(SHINGLE):
        value = value * _BASE + codes[at : at + count]
    # The finaliser of splitmix64: without it neighbours in the text are neighbours in value.
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _smallest(sketch: _Hashes, more: _Hashes) -> _Hashes:
    # Enough of the smallest that repeats cannot make them too few: text repeats itself a lot.
    return np.unique(np.concatenate([sketch, more]))[:SKETCH]


def _hashes(sketch: bytes) -> _Hashes:
    return np.frombuffer(sketch, dtype="<u8")
