"""What the indexer's handlers work with."""

from dataclasses import dataclass, field

from libs.models.ports import Embedder
from libs.service.document_watch import DocumentWatch
from libs.storage.ports import KeywordIndex, ObjectStore, VectorIndex
from libs.storage.sql import Database
from libs.storage.sql.active_index import ActiveIndex
from services.indexer.domain import Precedence


@dataclass(frozen=True, slots=True)
class Deps:
    db: Database
    objects: ObjectStore
    embedder: Embedder
    vectors: VectorIndex
    keywords: KeywordIndex
    active: ActiveIndex
    precedence: Precedence = field(default_factory=Precedence)
    watch: DocumentWatch = field(default_factory=DocumentWatch)
