"""A process that dies after the broker has its events, and before SQL knows that they went out.

Arguments: the keys of the events. The platform's settings are in the environment.
"""

import asyncio
import os
import signal
import sys
from typing import Any
from unittest.mock import patch

from libs.contracts import DocumentUploaded
from libs.eventbus import relay
from libs.service.process import open_platform
from libs.service.settings import PlatformSettings


async def die(*_args: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def main(keys: list[str]) -> None:
    async with open_platform(PlatformSettings(), "sender") as platform:
        await platform.connected()
        async with platform.db.work() as sql:
            for key in keys:
                await sql.emit(DocumentUploaded("acme", key, 1, "a.txt", "text/plain", "k", 1))
        await asyncio.sleep(60)


if __name__ == "__main__":
    with patch.object(relay, "mark_sent", die):
        asyncio.run(main(sys.argv[1:]))
