"""Asking a question whose answer survives cut connections and restarts of the platform."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from uuid import uuid4

from services.cli.client import Client, Json
from services.cli.errors import AwayError
from services.cli.patience import Patience

_TERMINAL = ("done", "error")


async def start_conversation(client: Client, patience: Patience) -> str:
    """A new conversation's id. Raises: CliError."""
    key = uuid4().hex
    made = await patience.through(lambda: client.post("/v1/conversations", {}, key=key))
    return str(made["id"])


async def ask(
    client: Client, conversation_id: str, text: str, patience: Patience
) -> AsyncIterator[tuple[str, Json]]:
    """The (type, data) events of the answer, each once, up to and with its terminal one.

    A cut stream is taken up after its last event; the question itself is asked once.
    Raises: CliError, when the platform stays away as well.
    """
    path, key = f"/v1/conversations/{conversation_id}/turns", uuid4().hex
    turn_id, seen = "", 0
    while True:
        if turn_id:
            stream = client.events(f"/v1/turns/{turn_id}/events", after=seen)
        else:
            stream = client.events(path, body={"text": text}, key=key)
        cut = AwayError("the stream ended before the answer did", answered=True)
        try:
            async with aclosing(stream):
                async for seq, kind, data in stream:
                    patience.answered()
                    turn_id = turn_id or str(data.get("turn_id") or "")
                    if seq <= seen:
                        continue
                    seen = seq
                    yield kind, data
                    if kind in _TERMINAL:
                        return
        except AwayError as exc:
            cut = exc
        await patience.bear(cut)
