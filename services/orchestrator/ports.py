"""What the orchestrator needs from outside."""

from typing import Protocol

from services.orchestrator.domain.planner import Decision, Situation


class Planner(Protocol):
    """Makes a plan for a turn, always and within its time bound; never raises."""

    async def decide(self, situation: Situation, *, tenant: str, turn_id: str) -> Decision: ...
