"""What the indexer's handlers work with."""

from dataclasses import dataclass, field

from libs.kernel import TransientError
from libs.models.ports import ChatModel, Embedder
from libs.service.document_watch import DocumentWatch
from libs.storage.ports import KeywordIndex, ObjectStore, VectorIndex
from libs.storage.sql import Database
from libs.storage.sql.active_index import IndexSets, read_sets
from services.indexer.domain import Precedence


@dataclass(frozen=True, slots=True)
class Deps:
    db: Database
    objects: ObjectStore
    embedder: Embedder
    vectors: VectorIndex
    keywords: KeywordIndex
    precedence: Precedence = field(default_factory=Precedence)
    watch: DocumentWatch = field(default_factory=DocumentWatch)
    chat: ChatModel | None = None  # finds facts beyond the rules
    chat_calls: int = 20  # that one document's graph may cost

    async def sets(self) -> IndexSets:
        """Where to write to, and to delete from, now. Raises: TransientError: there is none yet."""
        async with self.db.reading() as sql:
            return await read_sets(sql)

    def embedder_of(self, model: str) -> Embedder:
        """Raises: TransientError for a model that this process does not run."""
        if model != self.embedder.name:
            raise TransientError(
                f"the search index was made with {model}, and {self.embedder.name} is set up: "
                "run `sluice reindex`, or set up that model again"
            )
        return self.embedder
