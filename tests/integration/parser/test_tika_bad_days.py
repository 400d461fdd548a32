"""A Tika server that is away, dies, hangs or answers nonsense: no document fails for it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from libs.documents.serialise import load_document
from libs.kernel import PermanentError, TransientError
from libs.service.watching import watch
from libs.storage.objects.blocks import blocks
from services.ingest.parser.adapters import tika_server
from services.ingest.parser.adapters.child import Limits
from services.ingest.parser.adapters.pool import ParserPool, open_pool
from services.ingest.parser.adapters.tika_check import check_tika
from services.ingest.parser.ports import Parsed, ParseRequest
from tests.integration.parser.made_files import docx, paragraph
from tests.ports import free_port
from tests.servers.frame import running
from tests.servers.proxy import proxy_to
from tests.servers.tika import TikaServer
from tests.waiting import eventually, until

LIMITS = Limits(small_timeout_s=60, niceness=0)
WORD = docx(paragraph("年休假五天。"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TikaServer]:
    """One that the tests of this module may hurt."""
    with running(TikaServer(tmp_path_factory.mktemp("hurt") / "tika")) as server:
        yield server


async def parse(pool: ParserPool, data: bytes = WORD) -> Parsed:
    return await pool.parse(blocks(data), ParseRequest("a.docx", ""))


async def reads(pool: ParserPool) -> None:
    parsed = await eventually(lambda: parse(pool), on=TransientError, within_s=60)
    assert load_document(parsed.files).text == "年休假五天。"


async def test_a_server_that_dies_is_named_and_used_again_by_the_same_process(
    server: TikaServer,
) -> None:
    async with open_pool(1, LIMITS, tika_url=server.url) as pool:
        await reads(pool)
        server.kill()
        with pytest.raises(TransientError, match="no Tika server at") as caught:
            await parse(pool)
        assert caught.value.missing == "tika"
        server.start()
        await reads(pool)


async def test_a_connection_cut_in_the_middle_is_transient(server: TikaServer) -> None:
    async with (
        proxy_to(server.port) as proxy,
        open_pool(1, LIMITS, tika_url=f"http://127.0.0.1:{proxy.port}") as pool,
    ):
        await reads(pool)
        proxy.cut_answer_to(lambda piece: b"PUT /tika" in piece)
        with pytest.raises(TransientError, match="broke off"):
            await parse(pool)
        assert proxy.cuts == 1
        await reads(pool)


async def test_a_server_that_hangs_is_not_the_files_fault(server: TikaServer) -> None:
    limits = Limits(small_timeout_s=9, niceness=0)  # 5 of them are for the answer
    async with open_pool(1, limits, tika_url=server.url) as pool:
        await reads(pool)
        server.freeze()
        try:
            with pytest.raises(TransientError, match="hangs") as caught:
                await parse(pool)
        finally:
            server.thaw()
        assert caught.value.missing == "tika"
        await reads(pool)


async def test_readiness_names_a_server_that_is_away_until_it_is_there(server: TikaServer) -> None:
    said: list[str | None] = []
    stop = asyncio.Event()
    async with proxy_to(server.port) as proxy:
        proxy.refuses = True
        url = f"http://127.0.0.1:{proxy.port}"
        watching = asyncio.create_task(
            watch(lambda: check_tika(url), "tika", said.append, stop=stop)
        )
        await until(lambda: len(said) > 1)
        assert set(said) == {"tika"}
        proxy.refuses = False
        await until(lambda: said[-1] is None, within_s=60)
        stop.set()
        await watching


Answer = Callable[[str], tuple[int, bytes, float]]  # of a path: status, body, seconds before it


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[str]:
    """What a real server does not do at will."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if "chunked" in head.lower():
            await reader.readuntil(b"0\r\n\r\n")
        status, body, pause_s = answer(head.split(" ")[1])
        await asyncio.sleep(pause_s)
        said = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(said.encode() + body)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port := free_port())
    async with server:
        yield f"http://127.0.0.1:{port}"


BUSY = (503, b"", 0.0)
NOT_FOUND = (404, b"Not Found", 0.0)
VERSION = (200, b"Apache Tika 3.3.1", 0.0)


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        (BUSY, "tika"),
        (NOT_FOUND, ""),
        ((500, b"", 0.0), ""),
        ((200, b"<html>", 0.0), ""),
        ((200, b"[]", 0.0), ""),
        ((200, b'{"X-TIKA', 0.0), ""),
    ],
    ids=["503", "404", "500", "no JSON", "a list", "cut"],
)
async def test_an_answer_that_is_not_about_the_file_fails_no_file(
    answer: tuple[int, bytes, float], missing: str
) -> None:
    async with (
        answering(lambda _: answer) as url,
        open_pool(1, LIMITS, tika_url=url) as pool,
    ):
        with pytest.raises(TransientError) as caught:
            await parse(pool)
        assert caught.value.missing == missing


def test_a_file_with_far_too_much_text_is_given_up_by_the_server(
    server: TikaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tika_server, "_SPARE_BYTES", 0)
    path = tmp_path / "a.docx"
    client = tika_server.TikaServer(server.url, lambda: 60.0)
    path.write_bytes(docx(paragraph("x" * 150_000)))
    pieces, _ = client.extract(path, 100_000)  # twice as many are written
    assert b"".join(pieces).count(b"x") >= 150_000
    path.write_bytes(docx(paragraph("x" * 250_000)))
    with pytest.raises(PermanentError, match="too-large"):
        client.extract(path, 100_000)


async def test_an_answer_without_bounds_is_the_files_fault() -> None:
    body = b'{"X-TIKA:content": "' + b"x" * 18_000_000
    async with (
        answering(lambda _: (200, body, 0.0)) as url,
        open_pool(1, Limits(max_chars=1000, niceness=0), tika_url=url) as pool,
    ):
        with pytest.raises(PermanentError) as caught:
            await parse(pool)
        assert caught.value.reason == "too-large"


async def test_a_file_that_takes_too_long_on_a_server_that_works_is_refused() -> None:
    slow = (200, b"{}", 30.0)
    async with (
        answering(lambda path: VERSION if path == "/version" else slow) as url,
        open_pool(1, Limits(small_timeout_s=7, niceness=0), tika_url=url) as pool,
    ):
        with pytest.raises(PermanentError) as caught:
            await parse(pool)
        assert caught.value.reason == "parse-timeout"


@pytest.mark.parametrize(
    "answer", [NOT_FOUND, (200, b"nginx", 0.0), (200, b"Apache Tika 1.28", 0.0)]
)
async def test_what_is_no_tika_server_is_said(answer: tuple[int, bytes, float]) -> None:
    async with answering(lambda _: answer) as url:
        with pytest.raises(TransientError, match=f"TIKA_URL={url} is no Tika server of version 2"):
            await check_tika(url)
