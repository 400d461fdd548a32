"""Documents that wait for a stage, and tombstones that wait for the stores: for the reconciler."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import RowMapping

from libs.contracts import topic_of
from libs.eventbus.reconciler import Unfinished
from libs.storage.sql import UnitOfWork, pages
from libs.storage.sql.document_events import lane_of, pending_event
from libs.storage.sql.document_states import RUNNING, DocumentState


@dataclass(slots=True)
class DocumentWork:
    """`WorkSource` over the documents in some states; each waits for the event of its state."""

    kind: str
    states: Collection[str]

    async def unfinished(
        self, sql: UnitOfWork, after: str, limit: int
    ) -> Sequence[tuple[str, Unfinished]]:
        rows = await pages.documents_in(sql, self.states, after=after, limit=limit)
        return [(row["id"], work) for row in rows if (work := work_of(row)) is not None]


PIPELINE = DocumentWork("document", RUNNING)
DELETIONS = DocumentWork("deletion", (DocumentState.DELETED,))


def work_of(row: RowMapping) -> Unfinished | None:
    """What a document waits for; None: nothing."""
    event = pending_event(row)
    if event is None:
        return None
    topic = topic_of(type(event).__name__)
    lane = lane_of(row["priority"])
    return Unfinished(event, topic.consumers[0], lane if lane in topic.lanes else "")
