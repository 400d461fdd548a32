"""The bodies of `/v1/admin`; HTTP only. Fields are added, never renamed."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from services.gateway.domain.standing import Reason
from services.gateway.schemas import NO_CONTROLS

Label = Annotated[str, StringConstraints(min_length=1, max_length=191, pattern=NO_CONTROLS)]


class LagOut(BaseModel):
    group: str
    topic: str
    kind: Literal["main", "lane", "retry"]
    partitions: int
    waiting: int = Field(description="Messages that are not done, those at work now included.")
    oldest_s: float | None = Field(description="How long the oldest waits; null: unknown.")
    state: Literal["idle", "working", "slow", "stalled"]
    verdict: str = Field(description="The same in words.")


class WorkersOut(BaseModel):
    service: str
    live: int = Field(description="Processes with a heartbeat in the last 10 s.")
    ready: int
    missing: list[str] = Field(description="What those that are not ready wait for.")


class DeadLettersOut(BaseModel):
    group: str
    topic: str
    unhandled: int


class UnsentOut(BaseModel):
    rows: int
    oldest_due_s: float | None


class LagReportOut(BaseModel):
    state: Literal["ok", "stalled"]
    groups: list[LagOut]
    workers: list[WorkersOut]
    dead_letters: list[DeadLettersOut]
    unsent: UnsentOut = Field(description="Events that have not reached the broker yet.")


class LetterOut(BaseModel):
    id: str
    group: str
    topic: str
    partition: int
    offset: int
    reason: str
    detail: str | None = Field(description="null: the letter names no tenant, so it is withheld.")
    attempts: int
    key: str | None
    size_bytes: int
    created_at: str
    redriven_at: str | None


class LetterWhole(LetterOut):
    event: dict[str, object] | None = Field(description="What was to be handled, if readable.")
    headers: dict[str, str] | None


class LetterList(BaseModel):
    items: list[LetterOut]
    next: str | None = Field(description="Pass as `cursor` for the next page.")


class LetterFilter(BaseModel):
    """Which letters; without a field, all of them."""

    model_config = ConfigDict(extra="forbid")
    group: Label | None = None
    reason: Label | None = None
    cursor: str | None = Field(default=None, description="The `next` of the request before.")


class Handled(BaseModel):
    id: str
    how: Literal["sent-again", "resumed", "purged"]


class Refused(BaseModel):
    id: str
    detail: str


class HandledList(BaseModel):
    done: list[Handled]
    refused: list[Refused]
    next: str | None = Field(description="More match: send it as `cursor` of the next request.")


class KeyIn(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Label
    role: Literal["reader", "member", "admin"] = "member"


class KeyOut(BaseModel):
    id: str
    name: str
    role: str
    created_at: str
    revoked_at: str | None


class KeyMade(KeyOut):
    key: str = Field(description="The key itself, shown this once.")


class KeyList(BaseModel):
    items: list[KeyOut]


class WhyOut(BaseModel):
    """Why something has not moved."""

    state: str
    why: Reason
    words: str


class StuckOut(WhyOut):
    kind: Literal["document", "deletion", "turn"]
    id: str
    name: str
    since_s: float
    resumable: bool = Field(description="`POST /v1/documents/{id}/resume` can help.")


class StuckList(BaseModel):
    unfinished: list[StuckOut]
    failed: list[StuckOut]
    more: bool = Field(description="More is unfinished than is shown.")
    next_failed: str | None = Field(
        description="Pass as `failed_after` for the failed documents that follow."
    )


class ReindexIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rechunk: bool = Field(default=False, description="Cut every document anew, too.")


class ReindexOut(BaseModel):
    state: Literal["none", "building", "switched", "cancelling", "done", "cancelled"] = Field(
        description="switched: the new set is in use, the old one is about to be removed."
    )
    needed: list[str] = Field(description="Why the live set should be built anew; empty: it fits.")
    id: str | None = None
    rechunk: bool = False
    done: int | None = Field(default=None, description="Documents that are whole in the new set.")
    total: int | None = Field(default=None, description="Documents that search shows.")
    embedding_model: str | None = Field(default=None, description="Of the new set.")
    problem: str | None = Field(default=None, description="What holds it up now.")
    started_at: str | None = None
    switched_at: str | None = None
    ended_at: str | None = None
