"""The planner that asks a model first."""

import asyncio
from dataclasses import replace

import structlog

from libs.kernel import PermanentError
from libs.models.ports import ChatModel, ModelUnavailableError, Purpose
from services.orchestrator.domain.model_plan import (
    MAX_TOKENS,
    MalformedPlanError,
    checked,
    messages,
    schema,
)
from services.orchestrator.domain.planner import Decision, Situation, decide
from services.orchestrator.domain.small_talk import small_talk_reply

log = structlog.get_logger(__name__)


class ModelPlanner:
    """`Planner` over a chat model whose plan is checked; the rules plan when it has none in time.

    Args:
        timeout_s: For the whole call, its tries included.
    """

    def __init__(self, model: ChatModel, *, timeout_s: float) -> None:
        self._model = model
        self._timeout_s = timeout_s

    async def decide(self, situation: Situation, *, tenant: str, turn_id: str) -> Decision:
        if small_talk_reply(situation.text) is not None:
            return decide(situation)
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._model.complete_json(
                    messages(situation),
                    schema=schema(list(situation.domains)),
                    purpose=Purpose(tenant, "plan", turn_id),
                    max_tokens=MAX_TOKENS,
                )
            return checked(answer, situation, self._model.name)
        except TimeoutError:
            reason = "model-timeout"
        except ModelUnavailableError as exc:
            reason = f"model-{exc.outcome}"
        except PermanentError as exc:
            reason = exc.reason
        except MalformedPlanError:
            reason = "model-malformed"
        log.warning("planned_by_rules", turn_id=turn_id, reason=reason)
        return replace(decide(situation), by="fallback", note=reason)
