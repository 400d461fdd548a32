"""Users in fast forward: always so many documents and turns under way, documents go again."""

import asyncio
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from tests.chaos import wishes
from tests.chaos.load import DocumentEntry, Load, TurnEntry
from tests.chaos.patience import PatientClient, StuckError, UnexpectedError
from tests.chaos.wishes import Fate, Wishes

USERS = 20  # each does one thing after the other
LIVING = 40  # documents that are there at any time, besides the library

_FATES = {Fate.KEEP: 80, Fate.REPARSE: 8, Fate.AGAIN: 4, Fate.CANCEL: 4, Fate.BROKEN: 4}


def draw(seed: int, *, documents: int, turns: int) -> Wishes:
    """Everything at once, and every document's own fate before it is deleted."""
    rng = random.Random(seed)  # noqa: S311 - repeatable on purpose
    drawn = wishes.draw(seed, documents=documents, turns=turns, seconds=0.0)
    fates = rng.choices(list(_FATES), list(_FATES.values()), k=documents)
    each = [replace(w, fate=fate) for w, fate in zip(drawn.documents, fates, strict=True)]
    return replace(drawn, documents=each)


class SteadyLoad(Load):
    """Acts the wishes out as quickly as they are acknowledged; the library is left alone.

    The number of living documents is bounded, so whatever grows none the less is not theirs.
    """

    def __init__(self, client: PatientClient, wanted: Wishes) -> None:
        super().__init__(client, wanted)
        self._wanted = wanted
        self._living: deque[DocumentEntry] = deque()

    async def run(self) -> None:
        """Every wish; returns when each was acknowledged, and each turn has ended."""
        ledger = self.ledger
        ledger.documents = [DocumentEntry(wish) for wish in self._wanted.documents]
        ledger.turns = [TurnEntry(wish, ledger.library[wish.about]) for wish in self._wanted.turns]
        todo = iter(_mixed(ledger.documents, ledger.turns))
        await asyncio.gather(*(self._use(todo) for _ in range(USERS)))

    @property
    def progress(self) -> str:
        """How far it has come, for a person."""
        known = sum(bool(entry.ids) for entry in self.ledger.documents)
        ended = sum(entry.seen.ended for entry in self.ledger.turns)
        return f"{known} documents, {ended} turns"

    async def _use(self, todo: Iterator[DocumentEntry | TurnEntry]) -> None:
        for entry in todo:
            if isinstance(entry, TurnEntry):
                await self._turn(entry)
                continue
            try:
                await self._live(entry)
            except (StuckError, UnexpectedError) as exc:
                entry.stuck = str(exc)

    async def _live(self, entry: DocumentEntry) -> None:
        """Upload, follow to the end, change; then the oldest living document goes."""
        await self._upload(entry)
        if entry.wish.fate is not Fate.CANCEL:
            await self._ended(entry.ids[-1])
        await self._act(entry)
        if entry.wish.fate is not Fate.KEEP:
            await self._ended(entry.ids[-1])
        self._living.append(entry)
        if len(self._living) > LIVING:
            await self._delete(self._living.popleft())


def _mixed(
    documents: list[DocumentEntry], turns: list[TurnEntry]
) -> list[DocumentEntry | TurnEntry]:
    """In the same proportion all along, so that what is there does not change with the work."""
    placed: list[tuple[float, DocumentEntry | TurnEntry]] = []
    placed += [(at / len(documents), entry) for at, entry in enumerate(documents)]
    placed += [(at / len(turns), entry) for at, entry in enumerate(turns)]
    return [entry for _, entry in sorted(placed, key=lambda each: each[0])]
