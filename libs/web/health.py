"""/live, /ready and /metrics, the same on every process that speaks HTTP."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from fastapi import APIRouter, FastAPI
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from libs.observability.metrics import EVENT_LOOP_TASKS
from libs.web.hosts import HostCheckMiddleware

Missing = Callable[[], Awaitable[list[str]]]  # the names of what is not there yet; empty: ready


def health_app(missing: Missing, allowed_hosts: Sequence[str] = ()) -> FastAPI:
    """An app of these routes alone, for processes that serve nothing else."""
    app = FastAPI(openapi_url=None)
    app.include_router(health_routes(missing))
    app.add_middleware(HostCheckMiddleware, allowed=tuple(allowed_hosts))
    return app


def health_routes(missing: Missing) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/live")
    async def live() -> dict[str, str]:
        """The process runs."""
        return {"status": "live"}

    @router.get("/ready", responses={503: {"description": "`missing` names what is not there"}})
    async def ready() -> JSONResponse:
        """Whether requests can be served now; `missing` names what they would lack."""
        names = await missing()
        status = "waiting" if names else "ready"
        return JSONResponse({"status": status, "missing": names}, 503 if names else 200)

    @router.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Prometheus text."""
        EVENT_LOOP_TASKS.set(len(asyncio.all_tasks()))
        return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)

    return router
