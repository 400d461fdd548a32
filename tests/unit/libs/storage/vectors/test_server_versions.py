"""What a Milvus server is like, by what it says of itself."""

import pytest

from libs.storage.vectors.collection import Server


@pytest.mark.parametrize(
    ("version", "server"),
    [
        ("milvus_lite-3.2.2", Server(is_lite=True)),
        ("v2.3.5-lite", Server(upserts=False)),
        ("v2.3.21", Server(upserts=False)),
        ("2.4.0", Server()),
        ("v2.6.9", Server()),
        ("v3.0.0-dev", Server()),
        ("unknown", Server(upserts=False)),
    ],
)
def test_old_servers_are_known(version: str, server: Server) -> None:
    assert Server.of(version) == server
