"""The parser's suites run on both: Tika's native build, and a Tika server."""

import pytest

from tests.servers.tika import TikaServer

TIKAS = ["native", "server"]
# What a server with Tika's default settings says of files that the native build reads, at least in
# part: each is told, none is silently short.
ELSEWHERE = {
    "equations.docx": "equations were not read",  # its reader of Word files leaves them out
    "xinghe_truncated.docx": "corrupt",  # the archive's directory must be there
    "xinghe_bad_sheet.xlsx": "corrupt",  # one bad sheet spoils the workbook
}


def tika_url(request: pytest.FixtureRequest) -> str | None:
    """What the pool of a test is opened with, by a fixture that has TIKAS as its parameters."""
    if request.param == "native":
        return None
    server: TikaServer = request.getfixturevalue("tika")
    return server.url
