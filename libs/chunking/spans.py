"""Spans of a text that stay together, with what is known about them."""

from dataclasses import dataclass, replace

from libs.documents.model import BlockKind


@dataclass(frozen=True, slots=True)
class Atom:
    """A block, or a piece of one that was too large. `text[start:end]` has no white ends."""

    kind: BlockKind
    start: int
    end: int
    page: int | None
    heading_path: tuple[str, ...]
    # For later pieces of a table: its header row, which their text does not hold.
    header: str | None = None
    # Something found here that another subject begins: a new span does, if the open one has enough.
    begins: bool = False

    @property
    def size(self) -> int:
        return self.end - self.start

    def piece(self, start: int, end: int, header: str | None = None) -> "Atom":
        begins = self.begins and start == self.start
        return replace(self, start=start, end=end, header=header or self.header, begins=begins)


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive atoms that make one chunk, from the first's start to the last's end."""

    atoms: tuple[Atom, ...]

    @property
    def start(self) -> int:
        return self.atoms[0].start

    @property
    def end(self) -> int:
        return self.atoms[-1].end

    @property
    def heading_path(self) -> tuple[str, ...]:
        """What all atoms have in common; rows of a table that begin a span add its header row.

        So they do when a few words after the table share the span with its last rows.
        """
        path = self.atoms[0].heading_path
        for atom in self.atoms[1:]:
            path = _common(path, atom.heading_path)
        header = self.atoms[0].header
        return (*path, header) if header else path


def _common(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    length = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        length += 1
    return left[:length]
