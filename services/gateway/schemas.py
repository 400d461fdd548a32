"""The bodies of requests and answers; HTTP only. Fields are added, never renamed."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

_NO_CONTROLS = r"^[^\x00-\x1f\x7f]*$"
Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64, strip_whitespace=True, pattern=_NO_CONTROLS),
]


class _Body(BaseModel):
    """A field that is not known is refused: ignored, it would promise what is not done."""

    model_config = ConfigDict(extra="forbid")


class ConversationIn(_Body):
    agent: Name = "knowledge"
    memory: Literal["none", "window", "summary"] = "window"


class Created(BaseModel):
    id: str


class TurnIn(_Body):
    text: Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class TurnOut(BaseModel):
    """A turn as it stands; the answer is there once `state` is done."""

    turn_id: str
    conversation_id: str
    state: str
    text: str
    answer: str | None
    declined: bool
    extractive: bool
    citations: list[dict[str, Any]]
    plan: dict[str, Any] | None
    suggestions: list[str]
    usage: dict[str, Any]
    error: dict[str, Any] | None
    created_at: str


class ConversationOut(BaseModel):
    id: str
    agent: str
    memory: str
    created_at: str
    turns: list[TurnOut]


class Filters(_Body):
    """None yet; `domains` stands beside it."""


class SearchIn(_Body):
    query: Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
    top_k: int = Field(default=10, ge=1, le=100)
    domains: list[Name] = Field(default_factory=list, max_length=32)
    filters: Filters = Filters()


class ScoresOut(BaseModel):
    vector: float | None
    keyword: float | None
    graph: float | None
    fused: float
    rerank: float | None


class HitOut(BaseModel):
    """`start` and `end` are character offsets into the document's text."""

    chunk_id: str
    document_id: str
    document_name: str
    text: str
    start: int
    end: int
    page: int | None
    heading_path: list[str]
    scores: ScoresOut


class SearchOut(BaseModel):
    hits: list[HitOut]
    took_ms: float
