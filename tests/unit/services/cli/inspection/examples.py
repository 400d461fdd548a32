"""A small document, as the API answers about it."""

from typing import Any

from services.cli.inspection.gathering import Asked, Inspected, Parsed

Json = dict[str, Any]


def block(kind: str, start: int, end: int, *, level: int | None = None) -> Json:
    return {"ordinal": 0, "kind": kind, "start": start, "end": end, "page": 1, "level": level}


def chunk(ordinal: int, text: str, start: int, *, lead: str = "", parent: str = "d.1.p0") -> Json:
    return {
        "id": f"d.1.c{ordinal}",
        "ordinal": ordinal,
        "text": text,
        "start": start,
        "end": start + len(text),
        "page": 1,
        "heading_path": ["Rules"],
        "parent_id": parent,
        "lead": lead,
    }


def parsed(text: str, blocks: list[Json], chunks: list[Json], *, total: int = 0) -> Parsed:
    parent = chunk(0, text, 0) | {"id": "d.1.p0", "parent_id": None}
    outline = {
        "generation": 1,
        "next": None,
        "total": total or len(blocks),
        "chars": len(text),
        "title": "T",
        "language": "en",
        "pages": 1,
        "tables": 0,
        "warnings": ["page 3 could not be read"],
    }
    return Parsed(outline, blocks, text, chunks, [parent])


def small() -> Parsed:
    text = "Rules\nAbove 20 000 ask the director.\nItem | Limit\nTaxi | 100"
    blocks = [block("heading", 0, 5, level=1), block("paragraph", 6, 36), block("table", 37, 60)]
    return parsed(text, blocks, [chunk(0, text[:36], 0), chunk(1, text[37:], 37, lead="Rules")])


def document(**changed: Any) -> Json:
    return {
        "id": "d",
        "name": "rules.md",
        "media_type": "text/markdown",
        "size": 61,
        "sha256": "ab" * 32,
        "domain": "",
        "tags": [],
        "priority": "normal",
        "state": "indexed",
        "stage": None,
        "reason": None,
        "detail": None,
        "generation": 2,
        "active_generation": 1,
        "counts": {"chunks": 2},
        "active_counts": {"chunks": 2, "parents": 1},
        "created_at": "2026-01-31T08:00:00Z",
        "updated_at": "2026-01-31T08:00:00Z",
        "timeline": [
            {"seq": 1, "stage": "parsed", "generation": 1, "at": "T1", "data": {"pages": 1}}
        ],
        **changed,
    }


def plan(**changed: Any) -> Json:
    used = {
        "strategies": ["structure"],
        "child_max_chars": 300,
        "reasons": ["a policy", "asked so"],
    }
    recommended = {"strategies": ["structure"], "child_max_chars": 420, "reasons": ["a policy"]}
    return {
        "state": "indexed",
        "generation": 1,
        "requested": {"child_max_chars": 300},
        "used": used,
        "recommended": recommended,
        "profile": {"table_share": 0.25},
        **changed,
    }


def found(**changed: Any) -> Json:
    """An answer of the search with one hit, found by one channel of two."""
    channel = {"rank": 4, "raw": 0.871, "score": 0.64, "floor": 0.7, "passed": False, "adds": 0.2}
    hit = {
        "chunk_id": "d.1.c1",
        "document_id": "d",
        "document_name": "rules.md",
        "text": "Taxi | 100",
        "start": 37,
        "end": 60,
        "page": None,
        "heading_path": ["Rules"],
        "scores": {"vector": None, "keyword": 0.64, "graph": None, "fused": 0.3, "rerank": 0.91},
        "duplicate_of": "other.1.c7",
        "explanation": {
            "rank": 1,
            "fused_rank": 3,
            "channels": {"keyword": channel, "graph": channel | {"rank": 9, "passed": True}},
            "adds": {"vector": 0.1, "keyword": 0.2},
            "matched_terms": [{"term": "taxi", "weight": 3.1}],
        },
    }
    explanation = {
        "terms": [{"term": "taxi", "weight": 3.1}],
        "matching_documents": 1,
        "channels": {
            "keyword": {"found": 50, "dropped": {"stale": 7}, "below_floor": 9, "floor": 0.7}
        },
        "near_copies": 1,
        "rerank": {"model": "judge", "reranked": 1, "error": ""},
        "gate": {
            "passed": False,
            "coverage": 0.2,
            "nearest": 0.5,
            "needed": 1.15,
            "reason": "uncertain",
        },
        "seconds": {"vector": 0.012},
    }
    return {"hits": [hit], "took_ms": 15.0, "explanation": explanation, **changed}


def inspected(**changed: Any) -> Inspected:
    fields: dict[str, Any] = {
        "document": document(),
        "plan": plan(),
        "parsed": small(),
        "asked": [Asked("What may a taxi cost?", found(), found(hits=[]))],
        **changed,
    }
    return Inspected(**fields)
