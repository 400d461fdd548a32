"""The planner without a model."""

from services.orchestrator.domain.planner import Decision, Situation, decide


class RulePlanner:
    """`Planner` over the deterministic rules alone."""

    async def decide(self, situation: Situation, *, tenant: str, turn_id: str) -> Decision:  # noqa: ARG002
        return decide(situation)
