"""Search without an answer."""

import time
from dataclasses import asdict

from fastapi import APIRouter

from libs.retrieval import Query, Result
from libs.storage.sql.document_filter import DocumentFilter
from libs.web import Reader
from services.gateway.deps import GatewayDep
from services.gateway.limits import check_length
from services.gateway.schemas_search import (
    ExplanationOut,
    Filters,
    HitOut,
    SearchIn,
    SearchOut,
    microseconds,
)

router = APIRouter(tags=["search"])


@router.post("/v1/search")
async def search(gateway: GatewayDep, caller: Reader, body: SearchIn) -> SearchOut:
    """Passages that match, best first; the scores say why each stands where it stands."""
    check_length(body.query, gateway.settings.max_question_chars)
    started = time.perf_counter()
    query = Query(
        caller.tenant,
        body.query,
        body.top_k,
        body.domains,
        _filters(body.filters),
        body.neighbours,
        body.explain,
    )
    result = await gateway.search.find(query)
    took_ms = (time.perf_counter() - started) * 1_000
    return _shown(result, round(took_ms, 1))


def _filters(given: Filters) -> DocumentFilter:
    return DocumentFilter(
        given.tags,
        given.document_ids,
        microseconds(given.created_after),
        microseconds(given.created_before),
    )


def _shown(result: Result, took_ms: float) -> SearchOut:
    explained = asdict(result.explanation) if result.explanation else None
    of_hits = explained["hits"] if explained else {}
    hits = [asdict(hit) | {"explanation": of_hits.get(hit.chunk_id)} for hit in result.hits]
    return SearchOut(
        hits=[HitOut.model_validate(hit) for hit in hits],
        took_ms=took_ms,
        explanation=None if explained is None else ExplanationOut.model_validate(explained),
    )
