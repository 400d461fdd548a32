"""The plain page: nothing from elsewhere, nothing inline, and a key for the local browser only."""

import re
from dataclasses import replace
from pathlib import Path

import httpx

from services.gateway.app import create_app
from services.gateway.settings import GatewaySettings
from tests.unit.services.gateway.conftest import Stage

STATIC = Path("services/gateway/static")


def local(stage: Stage, home: Path, *, on: bool) -> None:
    stage.gateway = replace(stage.gateway, settings=GatewaySettings(home=home, local=on))
    (home / "api-key").write_text(f"{stage.keys['acme']}\n")


async def test_the_page_and_its_files_are_served_under_a_strict_policy(stage: Stage) -> None:
    async with stage.client(None) as client:
        page = await client.get("/")
        assert page.headers["content-type"].startswith("text/html")
        files = re.findall(r'(?:src|href)="([^"]+)"', page.text)
        assert len(files) == 3
        for path in ("/", *files):
            response = await client.get(path)
            assert response.status_code == 200, path
            policy = response.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert response.headers["x-content-type-options"] == "nosniff"
        for path in ("/static/index.html", "/static/..%2fapp.py", "/static/%2e%2e/app.py"):
            assert (await client.get(path)).status_code == 404


def test_nothing_inline_nothing_from_elsewhere_and_no_html_from_data() -> None:
    html = (STATIC / "index.html").read_text()
    script = (STATIC / "page.js").read_text()
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", html)
    for text in (html, script, (STATIC / "page.css").read_text()):
        assert not re.search(r"(?<!xmlns=\")https?://", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script)


async def test_a_browser_elsewhere_gets_no_key_whatever_host_it_names(
    stage: Stage, tmp_path: Path
) -> None:
    local(stage, tmp_path, on=True)
    for address, given in (("127.0.0.1", True), ("192.0.2.7", False)):
        transport = httpx.ASGITransport(create_app(stage.gateway), client=(address, 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            page = await client.get("/")
        assert page.status_code == 200
        assert ("set-cookie" in page.headers) is given


def test_both_languages_have_every_word() -> None:
    script, html = (STATIC / "page.js").read_text(), (STATIC / "index.html").read_text()
    english, chinese = (
        set(re.findall(r"(?:^|[,{\n]) *\"?([\w-]+)\"?: [\"{]", block))
        for block in re.findall(r"\n  (?:en|zh): \{(.*?)\n  \},", script, re.DOTALL)
    )
    assert {"send", "states", "indexed", "asking-back"} <= english
    assert english == chinese
    assert set(re.findall(r'data-[tp]="(\w+)"', html)) <= english


async def test_the_local_browser_gets_the_key_where_scripts_cannot_read_it(
    stage: Stage, tmp_path: Path
) -> None:
    local(stage, tmp_path, on=True)
    async with stage.client(None) as client:
        cookie = (await client.get("/")).headers["set-cookie"]
        assert f"sluice_key={stage.keys['acme']}" in cookie
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
        asked_by_the_page = {"Sec-Fetch-Site": "same-origin"}
        made = await client.post("/v1/conversations", headers=asked_by_the_page)
        assert made.status_code == 201
        elsewhere = await client.get("/", headers={"Host": "evil.example"})
        assert (elsewhere.status_code, elsewhere.headers.get("set-cookie")) == (403, None)


async def test_outside_local_mode_nobody_gets_a_key(stage: Stage, tmp_path: Path) -> None:
    local(stage, tmp_path, on=False)
    async with stage.client(None) as client:
        assert "set-cookie" not in (await client.get("/")).headers


async def test_a_missing_key_file_still_serves_the_page(stage: Stage, tmp_path: Path) -> None:
    local(stage, tmp_path, on=True)
    (tmp_path / "api-key").unlink()
    async with stage.client(None) as client:
        page = await client.get("/")
    assert (page.status_code, page.headers.get("set-cookie")) == (200, None)
