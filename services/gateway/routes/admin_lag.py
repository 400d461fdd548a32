"""/v1/admin/lag: what waits where, and who should be working on it."""

from fastapi import APIRouter

from libs.kernel import now_us
from libs.web import Admin, problems
from services.gateway.deps import GatewayDep
from services.gateway.lag import Lag, LagReader
from services.gateway.schemas_admin import (
    DeadLettersOut,
    LagOut,
    LagReportOut,
    UnsentOut,
    WorkersOut,
)

router = APIRouter(prefix="/v1/admin", tags=["admin"])


@router.get("/lag", responses=problems())
async def lag(gateway: GatewayDep, caller: Admin) -> LagReportOut:
    """Every consumer group and topic, lanes and retries included, with a verdict in words.

    Queues and processes are the platform's, so they are the same for every administrator; dead
    letters are counted as far as the caller may see them.
    """
    report = await LagReader(gateway.db, gateway.backlogs).read(caller.tenant)
    due_at = report.unsent.oldest_due_at
    return LagReportOut(
        state="stalled" if report.stalled else "ok",
        groups=[_shown(lag) for lag in report.lags],
        workers=[
            WorkersOut(service=w.service, live=w.live, ready=w.ready, missing=list(w.missing))
            for w in report.workers
        ],
        dead_letters=[
            DeadLettersOut(group=d.group, topic=d.topic, unhandled=d.unhandled)
            for d in report.dead_letters
        ],
        unsent=UnsentOut(
            rows=report.unsent.rows,
            oldest_due_s=None if due_at is None else max(0.0, (now_us() - due_at) / 1e6),
        ),
    )


def _shown(lag: Lag) -> LagOut:
    return LagOut(
        group=lag.of.group,
        topic=lag.of.topic,
        kind=lag.of.kind,
        partitions=lag.of.partitions,
        waiting=lag.waiting,
        oldest_s=None if lag.oldest_s is None else round(lag.oldest_s, 1),
        state=lag.verdict.state,
        verdict=lag.verdict.words,
    )
