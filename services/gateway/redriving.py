"""What sending a dead letter again means for the work it was about."""

from typing import Literal

from libs.contracts import Event, decode
from libs.contracts.record import SCHEMA
from libs.kernel import ConflictError, NotFoundError, SluiceError
from libs.storage.sql import UnitOfWork, dead_letters, documents, turns
from libs.storage.sql.dead_letters import NOBODY, Letter
from libs.storage.sql.document_states import DocumentState

How = Literal["resumed", "sent-again", "purged"]


async def redrive(sql: UnitOfWork, tenant: str, letter_id: str) -> How:
    """Let a letter's work go on; returns how.

    A letter of a failed document resumes the document where it failed; one whose work is still
    open goes back to its group.

    Raises: NotFoundError; ConflictError, with what to do instead: handled before, or its work has
    ended or moved on.
    """
    letter = await dead_letters.load(sql, tenant, letter_id)
    event = event_of(letter)
    if letter.redriven_at is None and event is not None:
        if getattr(event, "turn_id", None) is not None:
            await _check_turn(sql, tenant, event)
        elif getattr(event, "generation", None) and await _resumed(sql, tenant, event):
            await dead_letters.settle(sql, tenant, letter_id)
            return "resumed"
    await dead_letters.redrive(sql, tenant, letter_id)
    return "sent-again"


def event_of(letter: Letter) -> Event | None:
    """What was to be handled; None where that cannot be read or may not be shown."""
    if letter.tenant == NOBODY or letter.value is None:
        return None
    try:
        return decode(letter.value, (letter.headers or {}).get(SCHEMA))
    except SluiceError:
        return None


async def _check_turn(sql: UnitOfWork, tenant: str, event: Event) -> None:
    turn_id = str(getattr(event, "turn_id", ""))
    try:
        turn = await turns.load_turn(sql, tenant, turn_id)
    except NotFoundError:
        raise ConflictError("its turn does not exist any more: purge the letter") from None
    completed = type(event).__name__ == "TurnCompleted"  # such a turn has ended: that is its news
    if turn["state"] in turns.FINAL_STATES and not completed:
        raise ConflictError(
            f"turn {turn_id} has ended ({turn['state']}) and nobody waits for it: the user must "
            "ask again; purge the letter"
        )


async def _resumed(sql: UnitOfWork, tenant: str, event: Event) -> bool:
    document_id, generation = (
        str(getattr(event, "document_id", "")),
        getattr(event, "generation", 0),
    )
    row = await documents.find(sql, tenant, document_id)
    if row is None or row["state"] == DocumentState.DELETED:
        raise ConflictError(f"document {document_id} was deleted: purge the letter")
    if row["generation"] != generation:
        raise ConflictError(
            f"document {document_id} was parsed anew since (generation {row['generation']}, the "
            f"letter is of {generation}): purge the letter"
        )
    if row["state"] in {DocumentState.INDEXED, DocumentState.CANCELLED}:
        raise ConflictError(f"document {document_id} is {row['state']}: purge the letter")
    if row["state"] != DocumentState.FAILED:
        return False
    await documents.resume(sql, tenant, document_id)
    return True
