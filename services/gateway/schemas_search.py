"""The body of `POST /v1/search` and its answer. Fields are added, never renamed."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    model_validator,
)

from services.gateway.schemas import Body, Name

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _text(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("give a time as RFC 3339 text, such as 2026-01-31T08:00:00Z")  # noqa: TRY004
    return value


Time = Annotated[AwareDatetime, BeforeValidator(_text, json_schema_input_type=AwareDatetime)]


class Filters(Body):
    """Only passages of documents for which all of this holds."""

    tags: list[Name] = Field(default=[], max_length=20, description="The document has all of them.")
    document_ids: list[Name] = Field(
        default=[], max_length=1_000, description="The document is one of them."
    )
    created_after: Time | None = Field(
        default=None, description="Uploaded then or later (RFC 3339, with a time zone)."
    )
    created_before: Time | None = Field(
        default=None, description="Uploaded before then (RFC 3339, with a time zone)."
    )

    @model_validator(mode="after")
    def _times_in_order(self) -> Self:
        after, before = self.created_after, self.created_before
        if after is not None and before is not None and after >= before:
            raise ValueError("created_after must lie before created_before")
        return self


def microseconds(time: datetime | None) -> int | None:
    """Since the epoch, whatever the zone."""
    return None if time is None else (time - _EPOCH) // timedelta(microseconds=1)


class SearchIn(Body):
    query: Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
    top_k: int = Field(default=10, ge=1, le=100)
    domains: list[Name] = Field(default_factory=list, max_length=32)
    filters: Filters = Filters()
    neighbours: int = Field(
        default=0, ge=0, le=3, description="Chunks before and after each hit to give with it."
    )
    explain: bool = Field(default=False, description="Say why each hit stands where it stands.")


class ScoresOut(BaseModel):
    vector: float | None
    keyword: float | None
    graph: float | None
    fused: float
    rerank: float | None


class NeighbourOut(BaseModel):
    """`position` is -1 for the chunk before the hit, 1 for the one after it, and so on."""

    position: int
    chunk_id: str
    text: str
    start: int
    end: int
    page: int | None
    heading_path: list[str]


class TermOut(BaseModel):
    """A term of the question as it is indexed, with its weight (IDF) among the tenant's rows."""

    term: str
    weight: float


class ChannelScoreOut(BaseModel):
    """`raw` is the index's own score; `score` is calibrated; `adds` is its part of `fused`."""

    rank: int
    raw: float
    score: float
    floor: float
    passed: bool
    adds: float


class HitExplanationOut(BaseModel):
    """`fused_rank`: before near-copies went down and a rerank model put the first ones in order."""

    rank: int
    fused_rank: int
    channels: dict[str, ChannelScoreOut]
    adds: dict[str, float]
    matched_terms: list[TermOut]


class HitOut(BaseModel):
    """`start` and `end` are character offsets into the document's text.

    `duplicate_of` is the chunk of a better hit that says the same; such a hit stands below others.
    """

    chunk_id: str
    document_id: str
    document_name: str
    text: str
    start: int
    end: int
    page: int | None
    heading_path: list[str]
    scores: ScoresOut
    duplicate_of: str | None = None
    neighbours: list[NeighbourOut] = []
    explanation: HitExplanationOut | None = None


class ChannelOut(BaseModel):
    """`dropped` says why and how many: filtered, stale, deleted, foreign or unknown rows."""

    found: int
    dropped: dict[str, int]
    below_floor: int
    floor: float


class RerankOut(BaseModel):
    """`reranked` is 0 when the model could not be used (`error`): the fused order stands."""

    model: str
    reranked: int
    error: str


class GateOut(BaseModel):
    """Whether a question would be answered from these hits: coverage + nearest ≥ needed."""

    passed: bool
    coverage: float
    nearest: float
    needed: float
    reason: str


class ExplanationOut(BaseModel):
    """What the search did. `seconds` are of steps, some of which run side by side."""

    terms: list[TermOut]
    matching_documents: int | None
    channels: dict[str, ChannelOut]
    near_copies: int
    rerank: RerankOut | None
    gate: GateOut
    seconds: dict[str, float]


class SearchOut(BaseModel):
    hits: list[HitOut]
    took_ms: float
    explanation: ExplanationOut | None = None
