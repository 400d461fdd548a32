"""Keys and passwords are in nothing that the product writes or shows, however much it logs."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.stack import Stack
from tests.standins.llm import MODEL, LlmServer, Scene

pytestmark = pytest.mark.e2e

MODEL_KEY = "sk-model-s3cret-0123456789"
WRONG = "slk_wrong-s3cret-0123456789abcdef"


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with LlmServer([Scene(status=401)]) as model:  # its error quotes the key back
        environment = {
            "SLUICE_LOG_LEVEL": "DEBUG",
            "LLM_BASE_URL": model.base_url,
            "LLM_MODEL": MODEL,
            "LLM_API_KEY": MODEL_KEY,
        }
        stack = Stack(tmp_path / "home", environment)
        stack.start()
        try:
            yield stack
            assert any(MODEL_KEY in sent for sent in model.authorizations)
        finally:
            stack.stop()


def test_no_secret_is_written_or_shown(stack: Stack) -> None:
    own = (stack.home / "api-key").read_text().strip()
    shown = [stack.upload("gates.txt", "The north gate opens at seven in the morning.")]
    shown.append(stack.ask("When does the north gate open?"))
    said = []
    with stack.client() as client:
        made = client.post("/v1/admin/keys", json={"name": "x", "role": "reader"}).json()
        client.delete(f"/v1/admin/keys/{made['id']}").raise_for_status()
        paths = ("/metrics", "/ready", "/v1/admin/keys", "/v1/admin/lag", "/v1/admin/dlq", "/v1/x")
        said += [client.get(path).text for path in paths]
    for key in (WRONG, made["key"]):
        for headers in ({"X-API-Key": key}, {"Authorization": f"Bearer {key}"}):
            refused = httpx.get(f"{stack.url}/v1/documents?api_key={key}", headers=headers)
            assert refused.status_code == 401
            said.append(refused.text)
        refused = httpx.get(f"{stack.url}/v1/documents", cookies={"sluice_key": key})
        said.append(refused.text)
    stack.environment["SLUICE_API_KEY"] = WRONG
    for command in (["status"], ["ask", "why?"], ["keys", "list"], ["fsck"], ["lag"]):
        done = stack.cli(*command)
        said += [done.stdout, done.stderr]
    del stack.environment["SLUICE_API_KEY"]
    lines = [" ".join(process.cmdline()) for process in stack.family()]
    stack.stop()
    secrets = (own, made["key"], WRONG, MODEL_KEY)
    for text in (*map(str, shown), *said, *lines):
        assert not [secret for secret in secrets if secret in text], text[-2_000:]
    logged = 0
    for file in (stack.log, *stack.home.rglob("*")):
        if file.is_file() and file.name != "api-key":
            content = file.read_bytes()
            logged += content.count(b'"level":"debug"')
            for secret in secrets:
                at = content.find(secret.encode())
                assert at < 0, (file, content[max(0, at - 500) : at + 200])
    assert logged > 10
