"""What goes over HTTP. Fields are added, never renamed."""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from libs.chunking.plan import MAX_PARENT_CHARS
from libs.storage.sql.document_states import DocumentState

_NO_CONTROLS = r"^[^\x00-\x1f\x7f]*$"
Label = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=64, pattern=_NO_CONTROLS)
]
Tag = Annotated[Label, StringConstraints(min_length=1)]

# A tombstone answers 404 everywhere, so nobody can ask for it.
ListedState = StrEnum(  # type: ignore[misc]
    "ListedState", {s.name: s.value for s in DocumentState if s is not DocumentState.DELETED}
)


class PlanRequest(BaseModel):
    """What of the recommended chunk plan to override; sizes in characters."""

    model_config = ConfigDict(extra="forbid")

    strategies: list[Literal["structure", "recursive", "semantic", "llm"]] | None = Field(
        None, min_length=1
    )
    parent_max_chars: int | None = Field(None, ge=50, le=20_000)
    parent_min_chars: int | None = Field(None, ge=0, le=20_000)
    child_max_chars: int | None = Field(None, ge=50, le=20_000)
    table_max_chars: int | None = Field(None, ge=50, le=20_000)

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        sizes = [self.child_max_chars, self.table_max_chars, self.parent_max_chars]
        given = [size for size in sizes if size is not None]
        if given != sorted(given):
            raise ValueError("child_max_chars <= table_max_chars <= parent_max_chars must hold")
        if (self.parent_min_chars or 0) > (self.parent_max_chars or MAX_PARENT_CHARS):
            raise ValueError("parent_min_chars <= parent_max_chars must hold: set both")
        return self

    def fields(self) -> dict[str, Any]:
        """Only what was asked for."""
        return self.model_dump(exclude_none=True)


class UploadForm(BaseModel):
    """The form fields beside the file."""

    model_config = ConfigDict(extra="forbid")

    domain: Label = ""
    tags: list[Tag] = Field(default=[], max_length=20)
    priority: Literal["normal", "urgent"] = "normal"
    plan: PlanRequest | None = None


class Accepted(BaseModel):
    id: str
    name: str
    state: str
    generation: int
    sha256: str


class TimelineEntry(BaseModel):
    seq: int
    stage: str
    generation: int
    at: str
    data: dict[str, Any]


class NearDuplicate(BaseModel):
    id: str
    name: str
    similarity: float  # estimated share of the text in common, 0.8 to 1


class DocumentSummary(BaseModel):
    id: str
    name: str
    media_type: str
    size: int
    sha256: str
    domain: str
    tags: list[str]
    priority: str
    state: str
    stage: str | None  # where a failed generation failed
    reason: str | None
    detail: str | None
    generation: int
    active_generation: int | None  # the one that search shows
    counts: dict[str, int]  # of the newest generation
    active_counts: dict[str, int] | None  # of the one that search shows
    created_at: str
    updated_at: str
    # Other documents that search shows, at most 20 each: with the same letters and digits, and
    # with nearly the same.
    same_text_as: list[str] = []
    near_duplicates: list[NearDuplicate] = []


class DocumentView(DocumentSummary):
    timeline: list[TimelineEntry]
    plan: dict[str, Any] | None


class DocumentList(BaseModel):
    items: list[DocumentSummary]
    next: str | None  # the `cursor` of the next page


class PlanView(BaseModel):
    """`used` is what the newest chunks were made with: the recommendation under the request.

    `recommended` and the `profile` it was chosen by are known once the document was cut. The
    `reasons` of a plan are in English, its `reasons_zh` the same ones in Chinese.
    """

    state: str
    generation: int
    requested: dict[str, Any]
    used: dict[str, Any] | None
    recommended: dict[str, Any] | None
    profile: dict[str, Any] | None


class ChunkView(BaseModel):
    id: str
    ordinal: int
    text: str
    start: int  # code points into the text
    end: int
    page: int | None
    heading_path: list[str]
    parent_id: str | None
    lead: str  # how the document begins: indexed with the text; empty for parents


class ChunkPage(BaseModel):
    generation: int
    items: list[ChunkView]
    next: int | None  # the `after` of the next page


class PlanPreview(ChunkPage):
    """What a plan would give; `generation` is the one whose parse was cut."""

    complete: bool  # false: only the first `chars` characters were cut
    chars: int
    plan: dict[str, Any]  # as it would be used, with its reasons
    recommended: dict[str, Any]
    profile: dict[str, Any]
    counts: dict[str, int]  # parents and chunks, of all pages
