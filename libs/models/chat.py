"""The chat model that the settings name, or none."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from libs.models.ports import CallLog, ChatModel


@asynccontextmanager
async def open_chat_model(
    base_url: str | None, name: str | None, api_key: str | None, calls: CallLog
) -> AsyncIterator[ChatModel | None]:
    """A model on an OpenAI-compatible server; None when no server or no model is named.

    The client library is imported only when there is a server, as it is large.
    """
    if not base_url or not name:
        yield None
        return
    import openai

    from libs.models.openai_chat import OpenAIChatModel

    # Servers without keys still want the header's form.
    client = openai.AsyncOpenAI(
        base_url=base_url,
        api_key=api_key or "none",
        max_retries=0,
        timeout=openai.Timeout(None, connect=5.0),
    )
    async with client:
        yield OpenAIChatModel(client, name, calls)
