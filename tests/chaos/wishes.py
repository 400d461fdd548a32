"""What users want during a chaos run, drawn from a seed: pure, so that a seed says it all."""

import random
from dataclasses import dataclass
from enum import StrEnum

_SYLLABLES = ("ka", "vo", "lu", "ri", "ten", "mar", "so", "pel", "dan", "hu", "bre", "zin")
_PARAGRAPH = (
    "The yard of depot {name} is swept on Mondays, and its gates are painted every second spring. "
    "Deliveries are weighed at the north ramp before anybody signs for them. "
    "Whoever finds a damaged pallet moves it to bay {bay} and tells the shift leader."
)


class Fate(StrEnum):
    """What happens to a document after its upload."""

    KEEP = "keep"
    AGAIN = "uploaded again"  # the same content: the same document
    REPARSE = "parsed again"
    CANCEL = "cancelled"
    DELETE = "deleted"
    RETURN = "deleted, then uploaded again"  # the same content: another document
    BROKEN = "unreadable"


_WEIGHTS = {
    Fate.KEEP: 40,
    Fate.AGAIN: 12,
    Fate.REPARSE: 12,
    Fate.CANCEL: 10,
    Fate.DELETE: 12,
    Fate.RETURN: 8,
    Fate.BROKEN: 6,
}


@dataclass(frozen=True, slots=True)
class DocumentWish:
    """One file, when it is uploaded and what is asked for `then_s` after its upload."""

    number: int
    depot: str
    code: str
    fate: Fate
    urgent: bool
    at_s: float
    then_s: float

    @property
    def file_name(self) -> str:
        return f"depot-{self.number}.{'bin' if self.fate is Fate.BROKEN else 'md'}"

    @property
    def fact(self) -> str:
        return f"The access code of depot {self.depot} is {self.code}."

    @property
    def question(self) -> str:
        return f"What is the access code of depot {self.depot}?"

    @property
    def content(self) -> bytes:
        if self.fate is Fate.BROKEN:
            return random.Random(self.number).randbytes(4_096)  # noqa: S311 - test data
        sections = [f"# Depot {self.depot}", self.fact]
        for bay in range(self.number % 4):
            sections.append(f"## Bay {bay}\n\n{_PARAGRAPH.format(name=self.depot, bay=bay)}")
        return "\n\n".join(sections).encode()


@dataclass(frozen=True, slots=True)
class TurnWish:
    """One question about the library, and what its asker does meanwhile."""

    number: int
    conversation: int
    about: int  # index into the library
    at_s: float
    leaves_after: int | None  # events until the client hangs up and comes back
    cancels_after_s: float | None


@dataclass(frozen=True, slots=True)
class Wishes:
    """`library` is uploaded before anything is broken, and is what the turns ask about."""

    library: list[DocumentWish]
    documents: list[DocumentWish]
    turns: list[TurnWish]


def draw(seed: int, *, documents: int, turns: int, seconds: float) -> Wishes:
    """The same wishes for the same arguments."""
    rng = random.Random(seed)  # noqa: S311 - repeatable on purpose
    library = [
        _document(rng, number, seconds, Fate.REPARSE if number % 2 else Fate.KEEP)
        for number in range(max(4, documents // 20))
    ]
    fates = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=documents)
    first = len(library)
    return Wishes(
        library,
        [_document(rng, first + at, seconds, fate) for at, fate in enumerate(fates)],
        [_turn(rng, number, turns, len(library), seconds) for number in range(turns)],
    )


def _document(rng: random.Random, number: int, seconds: float, fate: Fate) -> DocumentWish:
    depot = "".join(rng.choices(_SYLLABLES, k=3)).capitalize() + f"-{number}"
    return DocumentWish(
        number,
        depot,
        code=str(rng.randrange(100_000, 1_000_000)),
        fate=fate,
        urgent=rng.random() < 0.1,
        at_s=rng.uniform(0, seconds),
        then_s=rng.choice((0.0, rng.uniform(0, 2), rng.uniform(0, seconds / 3))),
    )


def _turn(rng: random.Random, number: int, turns: int, library: int, seconds: float) -> TurnWish:
    return TurnWish(
        number,
        conversation=rng.randrange(max(1, turns // 4)),
        about=rng.randrange(library),
        at_s=rng.uniform(0, seconds),
        leaves_after=rng.randrange(1, 12) if rng.random() < 0.3 else None,
        cancels_after_s=rng.uniform(0, 4) if rng.random() < 0.08 else None,
    )
