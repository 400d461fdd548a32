"""From a parsed document to its chunks: recommend a plan, override it, refine it, cut by it."""

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from libs.chunking.chunking import ChunkSet, chunk_document
from libs.chunking.model_cuts import model_cuts
from libs.chunking.passages import Passage, passages_of
from libs.chunking.plan import ChunkPlan, Reason, override_plan, recommend_plan
from libs.chunking.profile import Profile, profile_of
from libs.chunking.semantic import subject_cuts, within_budget
from libs.documents.model import ParsedDocument
from libs.models.ports import ChatModel, Embedder


@dataclass(frozen=True, slots=True)
class Helpers:
    """What strategies other than the rules ask; without one, they give way and say so."""

    embedder: Embedder | None = None
    model: ChatModel | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """What was made of a document, and why."""

    profile: Profile
    recommended: ChunkPlan
    plan: ChunkPlan  # what was followed
    chunks: ChunkSet

    def record(self, requested: Mapping[str, Any]) -> dict[str, Any]:
        """The plan as the document keeps it: what was used, asked for and recommended, and why."""
        return {
            **asdict(self.plan),
            "requested": dict(requested),
            "recommended": asdict(self.recommended),
            "profile": asdict(self.profile),
        }


async def cut(
    document: ParsedDocument,
    requested: Mapping[str, Any],
    helpers: Helpers,
    *,
    tenant: str,
    document_id: str,
    generation: int,
    profile: Profile | None = None,
) -> Cut:
    """Cut a document by the recommended plan under what was asked for.

    Work on the text is done in a thread; once this is cancelled the thread ends soon.

    Args:
        profile: Of the whole, where `document` is a part of it.

    Raises: PermanentError `bad-plan`; TransientError of the embedder.
    """
    if profile is None:
        profile = await asyncio.to_thread(profile_of, document)
    recommended = recommend_plan(profile)
    plan = override_plan(recommended, requested)
    cuts, reasons = await _refined(document, plan, profile, helpers, tenant)
    stop = threading.Event()
    try:
        chunks = await asyncio.to_thread(
            chunk_document, document, plan, document_id, generation, cuts=cuts, stopped=stop.is_set
        )
    finally:
        stop.set()
    return Cut(profile, recommended, plan.because(reasons), chunks)


async def _refined(
    document: ParsedDocument, plan: ChunkPlan, profile: Profile, helpers: Helpers, tenant: str
) -> tuple[list[int], list[Reason]]:
    """Where prose is better cut than elsewhere, in order, as far as the plan's strategies tell."""
    if not {"semantic", "llm"} & set(plan.strategies):
        return [], []
    passages = await asyncio.to_thread(lambda: list(passages_of(document, plan.child_max_chars)))
    cuts: set[int] = set()
    reasons = []
    if "semantic" in plan.strategies:
        found, reason = await _by_subject(document.text, passages, plan, helpers.embedder)
        cuts.update(found)
        reasons.append(reason)
    if "llm" in plan.strategies:
        if profile.noise.is_high:
            found, reason = await model_cuts(document, passages, helpers.model, tenant)
            cuts.update(found)
        else:
            reason = Reason(
                "`llm` not used: it is for noisy text, this is none",
                "未使用 llm 策略：它用于噪声较多的文本",
            )
        reasons.append(reason)
    return sorted(cuts), reasons


async def _by_subject(
    text: str, passages: list[Passage], plan: ChunkPlan, embedder: Embedder | None
) -> tuple[list[int], Reason]:
    if embedder is None:
        return [], Reason("`semantic` not used: no embedder", "未使用 semantic 策略：没有嵌入模型")
    taken, left_out_chars = within_budget(passages)
    groups = [group for passage in taken for group in passage.groups]
    if not groups:
        return [], Reason(
            "`semantic` not used: no long prose", "未使用 semantic 策略：没有长段文字"
        )
    vectors = await embedder.embed_passages([text[g.start : g.end] for g in groups])
    cuts: list[int] = []
    at = 0
    for passage in taken:
        count = len(passage.groups)
        cuts += subject_cuts(passage.groups, vectors[at : at + count], plan.child_max_chars)
        at += count
    rest_en = f"; {left_out_chars} characters of prose beyond the limit cut recursively"
    rest_zh = f"；超出上限的 {left_out_chars} 个字符按递归方式切分"
    return cuts, Reason(
        f"{len(cuts)} cuts by subject in {len(groups)} groups of sentences"
        + (rest_en if left_out_chars else ""),
        f"在 {len(groups)} 组句子中按主题给出 {len(cuts)} 处切分"
        + (rest_zh if left_out_chars else ""),
    )
