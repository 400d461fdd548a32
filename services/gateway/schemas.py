"""The bodies of requests and answers; HTTP only. Fields are added, never renamed."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

NO_CONTROLS = r"^[^\x00-\x1f\x7f]*$"
Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64, strip_whitespace=True, pattern=NO_CONTROLS),
]


class Body(BaseModel):
    """A field that is not known is refused: ignored, it would promise what is not done."""

    model_config = ConfigDict(extra="forbid")


class ConversationIn(Body):
    agent: Name = "knowledge"
    memory: Literal["none", "window", "summary"] = "window"


class Created(BaseModel):
    id: str


class TurnIn(Body):
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
