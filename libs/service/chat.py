"""The chat model as every process wires it."""

from contextlib import AbstractAsyncContextManager

from libs.models.call_log import SqlCallLog
from libs.models.chat import open_chat_model
from libs.models.ports import ChatModel
from libs.service.settings import PlatformSettings
from libs.storage.sql import Database


def open_chat(
    settings: PlatformSettings, db: Database
) -> AbstractAsyncContextManager[ChatModel | None]:
    """The model that the settings name, or None; its calls are kept in `db`."""
    return open_chat_model(
        settings.llm_base_url, settings.llm_model, settings.llm_api_key, SqlCallLog(db)
    )
