"""Search without an answer."""

import time
from dataclasses import asdict

from fastapi import APIRouter

from libs.retrieval.types import Hit
from libs.web import Reader
from services.gateway.deps import GatewayDep
from services.gateway.limits import check_length
from services.gateway.schemas import HitOut, ScoresOut, SearchIn, SearchOut

router = APIRouter(tags=["search"])


@router.post("/v1/search")
async def search(gateway: GatewayDep, caller: Reader, body: SearchIn) -> SearchOut:
    """Passages that match, best first; the scores say why each stands where it stands."""
    check_length(body.query, gateway.settings.max_question_chars)
    started = time.perf_counter()
    hits = await gateway.search.search(
        caller.tenant, body.query, limit=body.top_k, domains=body.domains
    )
    took_ms = (time.perf_counter() - started) * 1_000
    return SearchOut(hits=[_shown(hit) for hit in hits], took_ms=round(took_ms, 1))


def _shown(hit: Hit) -> HitOut:
    fields = asdict(hit)
    return HitOut(**{**fields, "scores": ScoresOut(**fields["scores"])})
