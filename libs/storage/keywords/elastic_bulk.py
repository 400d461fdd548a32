"""Writing many rows into Elasticsearch: whatever of a bulk was refused is looked at one by one."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import orjson
from elasticsearch import AsyncElasticsearch

from libs.storage.keywords.elastic_errors import AGAIN, is_blocked, refused, refused_row
from libs.storage.keywords.elastic_index import Body, row_id, to_source
from libs.storage.ports import IndexRow

_MOST_BYTES: Final = 5_000_000  # of one request; the server takes 100 MB by default
_TRIES: Final = 5
_FIRST_PAUSE_S: Final = 0.1  # doubled after each try: 1.5 s in all

Row = tuple[IndexRow, Body]


async def write_rows(
    client: AsyncElasticsearch,
    name: str,
    rows: Iterable[IndexRow],
    where: str,
    *,
    timeout_s: float,
) -> None:
    """Rows are durable and findable when this returns; a repeat overwrites them.

    `timeout_s`: how long a row waits for its shard, where that is not there: shorter than the
    client waits for an answer, so that the server says for which rows it was not.

    Rows for which the server has no room at the moment (429, 503) are sent again, without those
    that were written.

    Raises: TransientError: not all of them were written; PermanentError: the server refuses a row;
        errors of the client.
    """
    for part in _parts(rows):
        await _write(client, name, part, where, timeout_s)


async def _write(
    client: AsyncElasticsearch, name: str, rows: Sequence[Row], where: str, timeout_s: float
) -> None:
    left = rows
    for tried in range(1, _TRIES + 1):
        failed = await _send(client, name, left, timeout_s)
        for (row, _), status, error in failed:
            if status not in AGAIN or is_blocked(error):
                raise refused_row(status, error, row.chunk_id, where)
        if not failed:
            return
        if tried == _TRIES:
            _, status, error = failed[0]
            raise refused(status, error, where)
        await asyncio.sleep(_FIRST_PAUSE_S * 2 ** (tried - 1))
        left = [row for row, _, _ in failed]


async def _send(
    client: AsyncElasticsearch, name: str, rows: Sequence[Row], timeout_s: float
) -> list[tuple[Row, int, Any]]:
    """What was not written: each with its status and error."""
    operations: list[Body] = []
    for row, source in rows:
        operations += [{"index": {"_id": row_id(row.tenant, row.chunk_id)}}, source]
    answer = await client.bulk(
        index=name,
        operations=operations,
        require_alias=True,  # a dropped index is not made again by a late writer
        refresh="wait_for",
        timeout=f"{int(timeout_s * 1000)}ms",
    )
    if not answer["errors"]:
        return []
    outcomes = [item["index"] for item in answer["items"]]
    return [
        (row, outcome["status"], outcome["error"])
        for row, outcome in zip(rows, outcomes, strict=True)
        if "error" in outcome
    ]


def _parts(rows: Iterable[IndexRow]) -> Iterator[list[Row]]:
    """Requests of bounded size."""
    part: list[Row] = []
    size = 0
    for row in rows:
        source = to_source(row)
        row_bytes = len(orjson.dumps(source))
        if part and size + row_bytes > _MOST_BYTES:
            yield part
            part, size = [], 0
        part.append((row, source))
        size += row_bytes
    if part:
        yield part
