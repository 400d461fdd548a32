"""The contract of the topics, for people who look at the API."""

from fastapi import APIRouter
from fastapi.responses import FileResponse

from libs.contracts.topics import SCHEMAS_DIR

router = APIRouter(tags=["contracts"])


@router.get("/asyncapi", response_class=FileResponse)
async def asyncapi() -> FileResponse:
    """The AsyncAPI 3 document of every topic, event and schema (YAML)."""
    return FileResponse(SCHEMAS_DIR / "asyncapi.yaml", media_type="application/yaml")
