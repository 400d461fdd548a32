"""The whole product on a disk that fills up: it says so, reads on, and ends all work later."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.stack import Stack, wait_until
from tests.small_disk import SmallDisk, small_disk

pytestmark = pytest.mark.e2e


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "home", size_mb=160) as disk:
        yield disk


@pytest.fixture
def stack(disk: SmallDisk) -> Iterator[Stack]:
    stack = Stack(disk.folder, {"SLUICE_MIN_FREE_MB": "30"})
    stack.start()
    yield stack
    stack.stop()


def test_a_disk_that_fills_up_fails_no_document(stack: Stack, disk: SmallDisk) -> None:
    known = stack.upload("known.md", "# Parcels\n\nParcels are delivered within three days.\n")
    assert known["state"] == "indexed"
    with stack.client() as client:
        taken = [_posted(client, number).json()["id"] for number in range(8)]
        disk.fill()
        wait_until(lambda: _lacks_disk(client), "the disk is named by /ready")
        refused = _posted(client, 99)
        assert refused.status_code == httpx.codes.INSUFFICIENT_STORAGE, refused.text
        assert "Free some space" in refused.json()["detail"]
        found = client.post("/v1/search", json={"query": "When are parcels delivered?"})
        assert found.status_code == httpx.codes.OK, found.text
        assert "three days" in found.text
    disk.make_room()
    wait_until(stack.is_ready, "ready again")
    assert {stack.finished(document_id)["state"] for document_id in taken} == {"indexed"}
    assert (
        stack.upload("late.md", "# Late\n\nWhat was refused is taken now.\n")["state"] == "indexed"
    )
    assert "no dead letters" in stack.cli("dlq", "list").stdout
    fsck = stack.cli("fsck", "--grace", "0", "--json")
    assert fsck.returncode == 0, fsck.stdout + fsck.stderr


def _posted(client: httpx.Client, number: int) -> Any:
    text = "\n\n".join(f"Rule {number}.{line} says what rule {line} says." for line in range(20))
    return client.post("/v1/documents", files={"file": (f"rules-{number}.md", text)})


def _lacks_disk(client: httpx.Client) -> bool:
    response = client.get("/ready")
    return response.status_code == httpx.codes.SERVICE_UNAVAILABLE and any(
        "disk" in name for name in response.json()["missing"]
    )
