"""A parsed document as parents (to answer from) and children (to find)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from libs.chunking.lead import lead_of
from libs.chunking.plan import ChunkPlan
from libs.chunking.spans import Atom, Span
from libs.chunking.structure import at_cuts, atoms_of, pack
from libs.documents.model import BlockKind, Chunk, ParsedDocument
from libs.documents.spans import strip_span
from libs.kernel import chunk_id


@dataclass(frozen=True, slots=True)
class ChunkSet:
    """Every visible character of the text is in exactly one parent and exactly one child."""

    parents: list[Chunk]
    children: list[Chunk]


def chunk_document(
    document: ParsedDocument,
    plan: ChunkPlan,
    document_id: str,
    generation: int,
    *,
    cuts: Sequence[int] = (),
    stopped: Callable[[], bool] = lambda: False,
) -> ChunkSet:
    """Cut a document by its plan; the same input gives the same chunks with the same ids.

    Linear in the length of the text. Children lie inside their parent. `cuts` are ascending offsets
    where another subject begins, as far as somebody could tell: prose is cut there rather than
    elsewhere, within the bounds of the plan. Once `stopped` says so
    nobody wants the chunks any more, and what is returned is not whole.
    """
    chunks = ChunkSet([], [])
    lead = lead_of(document.text)
    for ordinal, parent in enumerate(_parents(document, plan, cuts)):
        if stopped():
            break
        parent_id = chunk_id(document_id, generation, ordinal, parent=True)
        chunks.parents.append(_chunk(document.text, parent, parent_id, ordinal, None))
        for child in _children(document.text, parent, plan):
            at = len(chunks.children)
            child_id = chunk_id(document_id, generation, at)
            chunks.children.append(
                _chunk(document.text, child, child_id, at, parent_id, lead if at else "")
            )
    return chunks


def _parents(document: ParsedDocument, plan: ChunkPlan, cuts: Sequence[int]) -> Iterator[Span]:
    atoms: Iterator[Atom] = atoms_of(document)
    if "structure" not in plan.strategies:
        whole = strip_span(document.text, 0, len(document.text))
        atoms = (Atom(BlockKind.PARAGRAPH, start, end, None, ()) for start, end in whole)
    return pack(
        document.text,
        at_cuts(document.text, atoms, cuts),
        max_chars=plan.parent_max_chars,
        min_chars=plan.parent_min_chars,
        whole_max_chars=plan.parent_max_chars,
    )


def _children(text: str, parent: Span, plan: ChunkPlan) -> Iterator[Span]:
    return pack(
        text,
        parent.atoms,
        max_chars=plan.child_max_chars,
        min_chars=plan.child_max_chars // 3,
        whole_max_chars=plan.table_max_chars,
    )


def _chunk(
    text: str, span: Span, id_: str, ordinal: int, parent_id: str | None, lead: str = ""
) -> Chunk:
    return Chunk(
        chunk_id=id_,
        ordinal=ordinal,
        text=text[span.start : span.end],
        start=span.start,
        end=span.end,
        page=span.atoms[0].page,
        heading_path=span.heading_path,
        parent_id=parent_id,
        lead=lead,
    )
