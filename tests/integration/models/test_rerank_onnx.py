"""A cross-encoder in a folder, truly run: a tiny model that is made here."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from libs.kernel import PermanentError
from libs.models.rerank import open_reranker
from libs.models.rerank_onnx import MAX_TOKENS, OnnxReranker

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "parcels", "late", "letters", "quick"]
WEIGHTS = [9.0, 0.0, 0.0, -0.5, 1.0, 2.0, -1.0, -2.0]  # what a padding would add, if it were seen


def make_model(folder: Path, *, columns: int = 1, sums_over: tuple[int, ...] = (1, 2)) -> Path:
    """Sums a weight per token that the mask shows; a length that is no multiple of 8 is refused."""
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    table = np.array(WEIGHTS, dtype=np.float32).reshape(-1, 1).repeat(columns, axis=1)
    table[:, :-1] *= -1
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["each"]),
        helper.make_node("Cast", ["attention_mask"], ["seen"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["seen", "last"], ["wide"]),
        helper.make_node("Mul", ["each", "wide"], ["masked"]),
        # (batch, length / 8, 8, columns): fails for any other length.
        helper.make_node("Reshape", ["masked", "eights"], ["cut"]),
        helper.make_node("ReduceSum", ["cut", "sides"], ["logits"], keepdims=0),
    ]
    constants: dict[str, np.ndarray[Any, Any]] = {
        "table": table,
        "last": np.array([2], dtype=np.int64),
        "eights": np.array([0, -1, 8, columns], dtype=np.int64),
        "sides": np.array(sums_over, dtype=np.int64),
    }
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", columns])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(folder / "model.onnx"))
    return folder


@pytest.mark.parametrize("columns", [1, 2])
async def test_pairs_are_scored_in_the_order_of_the_texts(tmp_path: Path, columns: int) -> None:
    folder = make_model(tmp_path, columns=columns)
    texts = [
        "letters quick",
        "parcels late " + "late " * 20,
        "parcels",
        *["letters"] * 8,
        "late",
        "",
    ]
    async with open_reranker(None, None, None, folder) as reranker:
        assert reranker is not None
        scores = await reranker.rerank("parcels", texts)
        again = await reranker.rerank("parcels", texts[2:3])
    logits = [1 - 3, 1 + 1 + 42, 1 + 1, *[0] * 8, 1 + 2, 1]
    assert scores == pytest.approx([1 / (1 + np.exp(-logit)) for logit in logits])
    assert again == pytest.approx(scores[2:3])


async def test_a_model_that_scores_no_pairs_is_refused(tmp_path: Path) -> None:
    reranker = OnnxReranker(make_model(tmp_path, sums_over=(0, 1, 2)))
    with pytest.raises(PermanentError, match="score for each pair"):
        await reranker.rerank("late", ["quick", "letters"])
    reranker.close()


async def test_a_long_text_is_cut_and_the_question_is_kept(tmp_path: Path) -> None:
    reranker = OnnxReranker(make_model(tmp_path))
    [cut, whole] = await reranker.rerank("late", ["quick " * 2 * MAX_TOKENS, "quick"])
    assert cut < 1e-9 < whole
    reranker.close()


async def test_the_event_loop_computes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker = OnnxReranker(make_model(tmp_path))
    threads: list[str] = []
    load = reranker._load

    def seen() -> tuple[Any, Any]:
        threads.append(threading.current_thread().name)
        return load()

    monkeypatch.setattr(reranker, "_load", seen)
    await asyncio.gather(*(reranker.rerank("late", ["parcels"]) for _ in range(4)))
    assert len(threads) == 1
    assert threads[0].startswith("rerank")
    reranker.close()


async def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match=r"has no model.onnx and no tokenizer.json"):
        async with open_reranker(None, None, None, tmp_path):
            pass
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    async with open_reranker(None, None, None, tmp_path) as reranker:
        assert reranker is not None
        with pytest.raises(PermanentError, match="cannot be read"):
            await reranker.rerank("x", ["y"])
