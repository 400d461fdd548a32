"""Acts out the wishes and keeps what was acknowledged: the ledger that the audit checks."""

import asyncio
from dataclasses import dataclass, field

import httpx

from tests.chaos.patience import Followed, PatientClient, StuckError, UnexpectedError
from tests.chaos.wishes import DocumentWish, Fate, TurnWish, Wishes


@dataclass(slots=True)
class DocumentEntry:
    """A wish and what the platform said to it."""

    wish: DocumentWish
    ids: list[str] = field(default_factory=list)  # in the order in which they were given out
    deleted: set[str] = field(default_factory=set)
    cancelled: bool = False
    generation: int = 1  # the least that the document must have reached
    stuck: str = ""

    @property
    def living(self) -> str | None:
        """The id that must be there at the end."""
        return self.ids[-1] if self.ids and self.ids[-1] not in self.deleted else None


@dataclass(slots=True)
class TurnEntry:
    wish: TurnWish
    about: DocumentEntry
    seen: Followed = field(default_factory=Followed)
    cancelled: bool = False
    stuck: str = ""


@dataclass(slots=True)
class Ledger:
    library: list[DocumentEntry] = field(default_factory=list)
    documents: list[DocumentEntry] = field(default_factory=list)
    turns: list[TurnEntry] = field(default_factory=list)

    @property
    def all_documents(self) -> list[DocumentEntry]:
        return self.library + self.documents


class Load:
    """The users."""

    def __init__(self, client: PatientClient, wishes: Wishes) -> None:
        self._client = client
        self._wishes = wishes
        self._conversations: dict[int, asyncio.Task[str]] = {}
        self.ledger = Ledger()

    async def fill_library(self) -> None:
        """Upload what the turns ask about, and wait until it is searchable."""
        for wish in self._wishes.library:
            entry = DocumentEntry(wish)
            self.ledger.library.append(entry)
            await self._upload(entry)
        for entry in self.ledger.library:
            await self._ended(entry.ids[-1])

    async def run(self) -> None:
        """Every wish at its time; returns when each was acknowledged, and each turn has ended."""
        ledger = self.ledger
        ledger.documents = [DocumentEntry(wish) for wish in self._wishes.documents]
        ledger.turns = [TurnEntry(wish, ledger.library[wish.about]) for wish in self._wishes.turns]
        work = [self._change(entry) for entry in ledger.library]
        work += [self._document(entry) for entry in ledger.documents]
        work += [self._turn(entry) for entry in ledger.turns]
        await asyncio.gather(*work)

    async def _document(self, entry: DocumentEntry) -> None:
        try:
            await asyncio.sleep(entry.wish.at_s)
            await self._upload(entry)
            await asyncio.sleep(entry.wish.then_s)
            await self._act(entry)
        except (StuckError, UnexpectedError) as exc:
            entry.stuck = str(exc)

    async def _change(self, entry: DocumentEntry) -> None:
        """A library document may be parsed anew, and stays searchable all along."""
        try:
            await asyncio.sleep(entry.wish.at_s)
            await self._act(entry)
        except (StuckError, UnexpectedError) as exc:
            entry.stuck = str(exc)

    async def _act(self, entry: DocumentEntry) -> None:
        path = f"/v1/documents/{entry.ids[-1]}"
        match entry.wish.fate:
            case Fate.AGAIN:
                await self._upload(entry)
            case Fate.REPARSE:
                response = await self._client.request("POST", f"{path}/reparse")
                _expect(response, 202)
                entry.generation = response.json()["generation"]
            case Fate.CANCEL:
                response = await self._client.request("POST", f"{path}/cancel")
                _expect(response, 200, 409)
                entry.cancelled = response.status_code == httpx.codes.OK
            case Fate.DELETE:
                await self._delete(entry)
            case Fate.RETURN:
                await self._delete(entry)
                await self._upload(entry)

    async def _delete(self, entry: DocumentEntry) -> None:
        path = f"/v1/documents/{entry.ids[-1]}"
        _expect(await self._client.request("DELETE", path), 204, 404)
        entry.deleted.add(entry.ids[-1])

    async def _upload(self, entry: DocumentEntry) -> None:
        wish = entry.wish
        response = await self._client.request(
            "POST",
            "/v1/documents",
            files={"file": (wish.file_name, wish.content)},
            data={"priority": "urgent"} if wish.urgent else {},
        )
        _expect(response, 200, 202)
        if response.json()["id"] not in entry.ids:
            entry.ids.append(response.json()["id"])

    async def _ended(self, document_id: str) -> None:
        """Follows the document's progress; the stream ends with it."""
        response = await self._client.request("GET", f"/v1/documents/{document_id}/events")
        _expect(response, 200, 204)

    async def _turn(self, entry: TurnEntry) -> None:
        wish = entry.wish
        await asyncio.sleep(wish.at_s)
        cancelling = asyncio.create_task(self._cancel_turn(entry))
        try:
            conversation = await self._conversation(wish.conversation)
            await self._client.follow(
                f"/v1/conversations/{conversation}/turns",
                entry.about.wish.question,
                f"turn-{wish.number}",
                entry.seen,
                leaves_after=wish.leaves_after,
            )
            await cancelling
        except (StuckError, UnexpectedError) as exc:
            entry.stuck = str(exc)
        finally:
            cancelling.cancel()

    async def _conversation(self, number: int) -> str:
        async def create() -> str:
            response = await self._client.request(
                "POST",
                "/v1/conversations",
                json={},
                headers={"Idempotency-Key": f"conversation-{number}"},
            )
            _expect(response, 201, 200)
            return str(response.json()["id"])

        if number not in self._conversations:
            self._conversations[number] = asyncio.create_task(create())
        return await self._conversations[number]

    async def _cancel_turn(self, entry: TurnEntry) -> None:
        if entry.wish.cancels_after_s is None:
            return
        await asyncio.sleep(entry.wish.cancels_after_s)
        await entry.seen.known.wait()
        if not entry.seen.ended:
            path = f"/v1/turns/{entry.seen.turn_id}"
            _expect(await self._client.request("DELETE", path), 202)
            entry.cancelled = True


def _expect(response: httpx.Response, *codes: int) -> None:
    if response.status_code not in codes:
        asked = f"{response.request.method} {response.request.url.path}"
        raise UnexpectedError(f"{asked}: {response.status_code} {response.text}")
