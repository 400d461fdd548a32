"""The shape of a vector collection in Milvus."""

from typing import Any, Final

from pymilvus import DataType, MilvusClient

from libs.storage.ports import IndexEntry, IndexHit, IndexRow

# A session must see what another one has just written, also after a restart of the server.
CONSISTENCY: Final = "Strong"
SEARCH: Final = {"metric_type": "COSINE", "params": {"ef": 128}}


def make(client: MilvusClient, name: str, dimension: int, *, timeout_s: float) -> None:
    """Create the collection, partitioned by tenant, with an HNSW index on cosine."""
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=255)
    schema.add_field("tenant", DataType.VARCHAR, max_length=64, is_partition_key=True)
    schema.add_field("chunk_id", DataType.VARCHAR, max_length=191)
    schema.add_field("document_id", DataType.VARCHAR, max_length=64)
    schema.add_field("generation", DataType.INT64)
    schema.add_field("domain", DataType.VARCHAR, max_length=191 * 4)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    index = MilvusClient.prepare_index_params()
    index.add_index(
        "vector",
        index_type="HNSW",
        metric_type="COSINE",
        params={"M": 16, "efConstruction": 200},
    )
    client.create_collection(
        name,
        schema=schema,
        index_params=index,
        consistency_level=CONSISTENCY,
        timeout=timeout_s,
    )


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
