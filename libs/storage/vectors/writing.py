"""Rows into a full Milvus or Milvus Lite, so that whoever searches then finds them."""

from collections.abc import Sequence
from typing import Any, Final

from pymilvus import MilvusClient

from libs.kernel import TransientError
from libs.storage.vectors.collection import READ, Server
from libs.storage.vectors.filters import ids_filter

_TRIES: Final = 3


def write(
    client: MilvusClient,
    server: Server,
    name: str,
    data: Sequence[dict[str, Any]],
    *,
    timeout_s: float,
) -> None:
    """A repeat overwrites, also one that the client makes by itself when an answer was lost."""
    if server.upserts:
        client.upsert(name, list(data), timeout=timeout_s)
        await_findable(client, server, name, timeout_s=timeout_s)
    else:
        _replace(client, name, data, timeout_s=timeout_s)


def await_findable(client: MilvusClient, server: Server, name: str, *, timeout_s: float) -> None:
    """Return when whoever searches sees what was written until now, from any process."""
    if not server.is_lite:  # that one writes and reads in one step
        client.query(
            name,
            filter=ids_filter(["-"]),
            output_fields=["id"],
            consistency_level=READ,
            timeout=timeout_s,
        )


def _replace(
    client: MilvusClient, name: str, data: Sequence[dict[str, Any]], *, timeout_s: float
) -> None:
    """For servers without upserts: an insert that was repeated doubles rows, so they are counted.

    Raises: TransientError: others write the same rows all the time.
    """
    ids = {entity["id"]: entity for entity in data}
    rows = ids_filter(ids)
    for _ in range(_TRIES):
        client.delete(name, filter=rows, timeout=timeout_s)
        client.insert(name, list(ids.values()), timeout=timeout_s)
        found = client.query(
            name,
            filter=rows,
            output_fields=["count(*)"],
            consistency_level=READ,
            timeout=timeout_s,
        )
        if int(found[0]["count(*)"]) == len(ids):
            return
    raise TransientError(f"rows of collection {name} are written by others at the same time")
