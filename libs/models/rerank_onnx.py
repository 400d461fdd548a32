"""`Reranker` on a cross-encoder in a folder, on the CPU, in-process."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np

from libs.kernel import PermanentError

MAX_TOKENS: Final = 512
_MULTIPLE: Final = 8  # lengths that kernels like
_BATCH: Final = 8
_PAD_TOKENS: Final = ("[PAD]", "<pad>")


class OnnxReranker:
    """A folder with `model.onnx` (int8 or not, dynamic length) and `tokenizer.json`.

    The model takes `input_ids` and, where it declares them, `attention_mask` and `token_type_ids`;
    it gives one logit a pair, or two of which the last says "answers". Both files are loaded with
    the first use, in the thread that also tokenises and computes: the event loop never waits.

    Raises (every method): PermanentError (`rerank-model`): what is missing, and what to do.
    """

    def __init__(self, folder: Path) -> None:
        self.name = folder.resolve().name
        self._files = [folder / "model.onnx", folder / "tokenizer.json"]
        missing = [file.name for file in self._files if not file.is_file()]
        if missing:
            raise _unusable(f"RERANK_MODEL_DIR {folder} has no {' and no '.join(missing)}")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rerank")
        self._loaded: tuple[Any, Any] | None = None

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._rerank, query, list(texts))

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _rerank(self, query: str, texts: list[str]) -> list[float]:
        if self._loaded is None:
            self._loaded = self._load()
        tokenizer, session = self._loaded
        scores = np.zeros(len(texts), dtype=np.float64)
        # Texts of one length together: little is padding.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for at in range(0, len(order), _BATCH):
            batch = order[at : at + _BATCH]
            encoded = tokenizer.encode_batch([(query, texts[index]) for index in batch])
            scores[batch] = _run(session, encoded)
        return [float(score) for score in scores]

    def _load(self) -> tuple[Any, Any]:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as exc:
            raise _unusable(
                f"RERANK_MODEL_DIR needs the package {exc.name}: install it with "
                f"`pip install {exc.name}`"
            ) from exc
        model, vocabulary = (str(file) for file in self._files)
        try:
            tokenizer = Tokenizer.from_file(vocabulary)
            session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        except Exception as exc:  # each library has errors of its own, without a common base
            raise _unusable(
                f"the rerank model in {self._files[0].parent} cannot be read: {exc}"
            ) from exc
        ids = {token: tokenizer.token_to_id(token) for token in _PAD_TOKENS}
        pad = next((token for token in _PAD_TOKENS if ids[token] is not None), _PAD_TOKENS[0])
        tokenizer.enable_truncation(MAX_TOKENS, strategy="only_second")
        tokenizer.enable_padding(pad_id=ids[pad] or 0, pad_token=pad, pad_to_multiple_of=_MULTIPLE)
        return tokenizer, session


def _run(session: Any, encoded: Sequence[Any]) -> Any:
    """A probability for each pair."""
    known = {
        "input_ids": [each.ids for each in encoded],
        "attention_mask": [each.attention_mask for each in encoded],
        "token_type_ids": [each.type_ids for each in encoded],
    }
    wanted = {given.name for given in session.get_inputs()}
    feed = {name: np.asarray(known[name], dtype=np.int64) for name in wanted & known.keys()}
    try:
        logits = session.run(None, feed)[0]
        answers = np.asarray(logits, dtype=np.float64).reshape(len(encoded), -1)[:, -1]
    except Exception as exc:
        raise _unusable(f"the rerank model gives no score for each pair: {exc}") from exc
    return 1.0 / (1.0 + np.exp(-np.clip(answers, -500, 500)))


def _unusable(why: str) -> PermanentError:
    return PermanentError("rerank-model", f"{why}.")
