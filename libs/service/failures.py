"""How a stage's final failures reach the document itself."""

from typing import Protocol

from libs.eventbus.subscriptions import Failure, FailureHandler
from libs.storage.sql import Database, documents


class GenerationEvent(Protocol):
    """Any event about one generation of a document."""

    @property
    def tenant(self) -> str: ...
    @property
    def document_id(self) -> str: ...
    @property
    def generation(self) -> int: ...


def failing(db: Database, stage: str) -> FailureHandler[GenerationEvent]:
    """A subscription's `failed` hook: the generation fails at `stage` with the failure's reason.

    A repeat finds it failed and changes nothing.
    """

    async def fail(event: GenerationEvent, failure: Failure) -> None:
        async with db.work() as sql:
            await documents.fail(
                sql,
                event.tenant,
                event.document_id,
                event.generation,
                stage=stage,
                reason=failure.reason,
                detail=failure.detail,
            )

    return fail
