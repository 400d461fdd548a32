"""The parser's suites run on both: Tika's native build, and a Tika server."""

import pytest

from tests.servers.tika import TikaServer

TIKAS = ["native", "server"]


def tika_url(request: pytest.FixtureRequest) -> str | None:
    """What the pool of a test is opened with, by a fixture that has TIKAS as its parameters."""
    if request.param == "native":
        return None
    server: TikaServer = request.getfixturevalue("tika")
    return server.url
