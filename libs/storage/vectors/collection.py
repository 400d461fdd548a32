"""The shape of a vector collection in Milvus."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from pymilvus import DataType, MilvusClient

from libs.kernel import TransientError
from libs.storage.ports import IndexEntry, IndexHit, IndexRow

# Reads wait until the server knows everything that was written before they began, also after its
# restart. On a full Milvus that takes one tick of its clock: 200 ms unless it is set up otherwise.
READ: Final = "Strong"
# A search waits for what is older than 5 s alone: what is younger has been waited for by its
# writer. Without the wait a server that has just been restarted finds less than there is.
SEARCH: Final = "Bounded"
_PARTITIONS: Final = 16  # tenants are spread over them by hash, so that a search reads a part
METRIC: Final = "COSINE"
_EF: Final = 128
_EVERY_LIST: Final = 16_384  # more lists than Milvus Lite makes


@dataclass(frozen=True, slots=True)
class Server:
    """What the server at hand is like."""

    is_lite: bool = False
    # Before 2.4, upserts compute the partition from another field (milvus-io/milvus#30607).
    upserts: bool = True

    @classmethod
    def of(cls, version: str) -> "Server":
        """By what it says of itself: `milvus_lite-3.2.2`, `v2.6.9`, `2.3.5-lite`."""
        if version.startswith("milvus_lite"):
            return cls(is_lite=True)
        stated = re.search(r"(\d+)\.(\d+)", version)
        known = (int(stated[1]), int(stated[2])) if stated else (0, 0)
        return cls(upserts=known >= (2, 4))


def make(
    client: MilvusClient, name: str, dimension: int, *, is_lite: bool, timeout_s: float
) -> None:
    """Create the collection, partitioned by tenant, with an index on cosine."""
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=255)
    schema.add_field("tenant", DataType.VARCHAR, max_length=64, is_partition_key=True)
    schema.add_field("chunk_id", DataType.VARCHAR, max_length=191)
    schema.add_field("document_id", DataType.VARCHAR, max_length=64)
    schema.add_field("generation", DataType.INT64)
    schema.add_field("domain", DataType.VARCHAR, max_length=191 * 4)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    client.create_collection(
        name,
        schema=schema,
        index_params=index_params(is_lite=is_lite),
        consistency_level=READ,
        num_partitions=_PARTITIONS,
        timeout=timeout_s,
    )


def check(client: MilvusClient, name: str, dimension: int, *, timeout_s: float) -> None:
    """Raises: TransientError: its vectors are not those of the embedding model."""
    fields = client.describe_collection(name, timeout=timeout_s)["fields"]
    found = {field["name"]: field["params"].get("dim") for field in fields}.get("vector")
    if found is None or int(found) != dimension:
        raise TransientError(
            f"collection {name} holds vectors of {found} dimensions and the embedding model makes "
            f"{dimension}: configure the model it was made with, or run `sluice reindex`",
            missing=f"collection of {dimension} dimensions: run `sluice reindex`",
        )


def index_params(*, is_lite: bool) -> Any:
    """HNSW on a full Milvus, which scans by itself when a filter leaves few rows.

    Milvus Lite's HNSW walks the graph whatever the filter: of a tenant's 20 rows among 20 000 it
    found 5, of 20 rows with the vectors of 20 000 others none. So there one list holds everything
    and is scanned whole, in native code: exact, and at 20 000 rows as fast as the filtered graph
    (8 ms; its FLAT, in NumPy, takes 100) and built 80 times as fast.
    """
    params = MilvusClient.prepare_index_params()
    if is_lite:
        # It reads the protocol's JSON, which the client does not make of a dict.
        one_list = {"params": json.dumps({"nlist": 1})}
        params.add_index("vector", index_type="IVF_FLAT", metric_type=METRIC, params=one_list)
    else:
        graph = {"M": 16, "efConstruction": 200}
        params.add_index("vector", index_type="HNSW", metric_type=METRIC, params=graph)
    return params


def search_params(limit: int, *, is_lite: bool) -> dict[str, Any]:
    params = {"nprobe": _EVERY_LIST} if is_lite else {"ef": max(_EF, limit)}
    return {"metric_type": METRIC, "params": params}


def renew_index(client: MilvusClient, name: str, *, timeout_s: float) -> None:
    """Give a collection of Milvus Lite that was made with another index the one of today.

    Repeatable: stopped after any step, the next call goes on. Without an index it is searched
    all the same, more slowly.
    """
    wanted = index_params(is_lite=True)
    found = client.describe_index(name, "vector", timeout=timeout_s)
    if found is not None and found["index_type"] == wanted[0].index_type:
        return
    if found is not None:
        client.release_collection(name, timeout=timeout_s)
        client.drop_index(name, "vector", timeout=timeout_s)
    client.create_index(name, wanted, timeout=timeout_s)


def to_entity(row: IndexRow) -> dict[str, Any]:
    return {
        "id": f"{row.tenant}/{row.chunk_id}",  # tenants' equal chunk ids stay apart
        "tenant": row.tenant,
        "chunk_id": row.chunk_id,
        "document_id": row.document_id,
        "generation": row.generation,
        "domain": row.domain,
        "vector": row.vector,
    }


def to_entry(entity: Any) -> IndexEntry:
    return IndexEntry(entity["chunk_id"], entity["document_id"], int(entity["generation"]))


def to_hit(found: Any) -> IndexHit:
    entity = found["entity"]
    return IndexHit(
        entity["chunk_id"],
        entity["document_id"],
        int(entity["generation"]),
        float(found["distance"]),
    )
