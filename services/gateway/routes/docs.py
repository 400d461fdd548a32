"""The whole HTTP surface in one OpenAPI document: the gateway's own and what it passes on."""

from typing import Any

import httpx
from fastapi import APIRouter, Request

from services.gateway.deps import GatewayDep

router = APIRouter(include_in_schema=False)

_PASSED_ON = "/v1/documents"


@router.get("/openapi.json")
async def openapi(request: Request, gateway: GatewayDep) -> dict[str, Any]:
    """OpenAPI 3. Without the documents' part while ingest is away."""
    own: dict[str, Any] = request.app.openapi()
    try:
        answer = await gateway.ingest.get("/openapi.json")
        theirs = answer.raise_for_status().json()
    except (httpx.HTTPError, ValueError):
        return own
    passed_on = {k: v for k, v in theirs["paths"].items() if k.startswith(_PASSED_ON)}
    components = {
        kind: {**theirs["components"].get(kind, {}), **own["components"].get(kind, {})}
        for kind in {*theirs["components"], *own["components"]}
    }
    return {**own, "paths": {**own["paths"], **passed_on}, "components": components}
