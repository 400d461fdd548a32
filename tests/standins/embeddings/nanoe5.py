"""Stands in for the embedding engine: hashed words instead of a model, a thousand times quicker.

    Stack(home, {"PYTHONPATH": str(EMBEDDINGS)})

With this folder first in a process's path, everything around the engine is real: the pool, its
worker processes, the vectors' dimension and the cosines' range that the product calibrates.
"""

import re
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DIMENSION = 384
_SHARED = 0.75  # the cosine of two texts that share no word: as low as the model's get
# Words by their beginning, which stands for their stem, and pairs of Chinese characters.
_WORDS = re.compile(r"\b[a-z0-9]{1,5}|[\u4e00-\u9fff](?=([\u4e00-\u9fff]?))")


class E5:
    """The part of the engine's interface that the product uses."""

    def __init__(self, **_options: Any) -> None:
        pass

    def query(self, text: str) -> NDArray[np.float32]:
        return _embedded(text)

    def passage(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([_embedded(text) for text in texts])


def _embedded(text: str) -> NDArray[np.float32]:
    """Each word has a direction of its own."""
    own = np.zeros(_DIMENSION, dtype=np.float32)
    for match in _WORDS.finditer(text.lower()):
        number = zlib.crc32((match[0] + (match[1] or "")).encode())
        own[1 + number % (_DIMENSION - 1)] += 1.0 if number & 0x8000_0000 else -1.0
    length = float(np.linalg.norm(own))
    vector = own * (np.sqrt(1 - _SHARED) / length) if length else own
    vector[0] = np.sqrt(_SHARED) if length else 1.0
    return vector.astype(np.float32)
