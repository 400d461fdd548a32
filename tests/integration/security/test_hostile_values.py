"""Values that mean something to SQL, filters or headers are kept or refused, never obeyed."""

import json
from urllib.parse import quote, unquote

import httpx
import pytest

from tests.integration.security.api import Api
from tests.suites.search_index import HOSTILE

pytestmark = pytest.mark.integration

NAMES = {
    "../../x.txt": "x.txt",
    "/etc/passwd": "passwd",
    "C:\\Windows\\win.ini": "win.ini",
    "\\\\server\\share\\a.txt": "a.txt",
    "..": "unnamed",
    "NUL": "NUL",
    "aux.txt": "aux.txt",
    "a.pdf.exe": "a.pdf.exe",
    "a\x00.txt": "a.txt",
    "<script>alert(1)<b>.txt": "<script>alert(1)<b>.txt",
    "exe\u202efdp.txt": "exefdp.txt",
    "x" * 300 + ".txt": "x" * 251 + ".txt",
    "中" * 100 + ".txt": "中" * 100 + ".txt",
    "a; filename=b.txt": "a; filename=b.txt",
    "a%0D%0ASet-Cookie: x=1.txt": "aSet-Cookie: x=1.txt",
    " ": "unnamed",
}


async def test_a_domain_and_a_tag_are_themselves_or_refused(api: Api) -> None:
    key, rival = await api.key("admin"), await api.key("admin", "rival")
    async with api.client(key) as client, api.client(rival) as other:
        for at, value in enumerate(HOSTILE[::2]):
            files = {"file": (f"{at}.txt", f"gate {at}".encode())}
            fields = {"domain": value, "tags": value}
            made = await client.post("/v1/documents", files=files, data=fields)
            controls = any(char < " " or char == "\x7f" for char in value.strip())
            assert made.status_code == (422 if controls else 202), value
            assert (await other.get("/v1/documents", params={"domain": value})).json()[
                "items"
            ] == []
            wanted = {"query": value or "x", "domains": [value]}
            assert (await client.post("/v1/search", json=wanted)).status_code in {200, 422}
            assert (await client.get("/v1/documents", params={"cursor": value})).status_code == 422
            if controls or not value.strip():
                continue
            listed = (await client.get("/v1/documents", params={"domain": value.strip()})).json()
            assert {item["domain"] for item in listed["items"]} == {value.strip()}, value
            assert made.json()["id"] in {item["id"] for item in listed["items"]}


async def test_an_id_is_looked_up_and_nothing_else(api: Api) -> None:
    async with api.client(await api.key("admin")) as client:
        for value in (*HOSTILE[1::4], "../../../etc/passwd", "a/../b"):
            for path in ("/v1/documents/{}", "/v1/turns/{}", "/v1/conversations/{}", "/static/{}"):
                found = await client.get(path.format(quote(value, safe="")))
                assert found.status_code == 404, value


async def test_a_files_name_is_harmless_wherever_it_comes_back(api: Api) -> None:
    async with api.client(await api.key("admin")) as client:
        for at, (sent, stored) in enumerate(NAMES.items()):
            head = f'Content-Disposition: form-data; name="file"; filename="{sent}"'
            made = await _post(client, _form(_part(head.encode(), b"gate %d" % at)))
            assert (made.status_code, made.json()["name"]) == (202, stored), sent
            got = await client.get(f"/v1/documents/{made.json()['id']}/file")
            shown = got.headers["content-disposition"]
            assert shown.startswith("attachment; ")
            assert shown.count('"') == 2
            assert unquote(shown.split("filename*=UTF-8''")[1]) == stored
            assert got.headers["x-content-type-options"] == "nosniff"
            assert "set-cookie" not in got.headers


async def test_other_ways_to_write_a_name(api: Api) -> None:
    disposition = b'Content-Disposition: form-data; name="file"; '
    async with api.client(await api.key("admin")) as client:
        for at, (name, stored) in enumerate(
            {
                b'filename="\xff\xfe.txt"': "\ufffd\ufffd.txt",
                b"filename*=UTF-8''%e4%b8%ad.txt": "unnamed",  # RFC 7578 forbids it
                b"filename*=UTF-8''..%2f..%2fx.txt": "unnamed",
                b"filename=plain.txt": "plain.txt",
                b'filename=""': "unnamed",
            }.items()
        ):
            made = await _post(client, _form(_part(disposition + name, b"way %d" % at)))
            assert (made.status_code, made.json()["name"]) == (202, stored), name


HEAD = b'Content-Disposition: form-data; name="file"; filename="a.txt"'
BROKEN: dict[str, bytes] = {
    "no body": b"",
    "no boundary": b"just text",
    "another boundary": b"--other\r\n" + HEAD + b"\r\n\r\nx\r\n--other--\r\n",
    "no end": b"--edge\r\n" + HEAD + b"\r\n\r\nx",
    "no headers": b"--edge\r\n\r\nx\r\n--edge--\r\n",
    "no file": b'--edge\r\nContent-Disposition: form-data; name="x"\r\n\r\nx\r\n--edge--\r\n',
    "two files": b"--edge\r\n"
    + HEAD
    + b"\r\n\r\nx\r\n--edge\r\n"
    + HEAD
    + b"\r\n\r\ny\r\n--edge--\r\n",
    "half a header": b"--edge\r\nContent-Dispo",
    "huge header": b"--edge\r\nX: " + b"x" * 50_000 + b"\r\n\r\nx\r\n--edge--\r\n",
    "NUL in a header": b"--edge\r\nContent-\x00: x\r\n\r\nx\r\n--edge--\r\n",
    "many parts": b'--edge\r\nContent-Disposition: form-data; name="tags"\r\n\r\nx\r\n' * 200
    + b"--edge--\r\n",
    "no UTF-8": b'--edge\r\nContent-Disposition: form-data; name="x"\r\n\r\n\xff\r\n--edge--\r\n',
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=list(BROKEN))
async def test_a_broken_form_is_refused_and_leaves_nothing(api: Api, body: bytes) -> None:
    async with api.client(await api.key("admin")) as client:
        refused = await _post(client, body)
        assert 400 <= refused.status_code < 500, refused.text
        problem = json.loads(refused.text)
        assert problem["status"] == refused.status_code
        assert problem["detail"].endswith(".")
        assert (await client.get("/v1/documents")).json()["items"] == []
        assert await api.objects.keys("") == []


def _part(head: bytes, content: bytes) -> bytes:
    return b"--edge\r\n" + head + b"\r\n\r\n" + content + b"\r\n"


def _form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--edge--\r\n"


async def _post(client: httpx.AsyncClient, body: bytes) -> httpx.Response:
    kind = {"Content-Type": "multipart/form-data; boundary=edge"}
    return await client.post("/v1/documents", content=body, headers=kind)
