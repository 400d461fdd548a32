"""Knowledge domains: the ones a tenant's documents are filed under."""

from sqlalchemy import select

from libs.storage.sql.tables import documents
from libs.storage.sql.work import UnitOfWork

MAX_DOMAINS = 200


async def domains_of(sql: UnitOfWork, tenant: str) -> list[str]:
    """Names of the domains with at least one document that is not deleted, sorted."""
    rows = await sql.rows(
        select(documents.c.domain)
        .where(
            documents.c.tenant == tenant, documents.c.domain != "", documents.c.state != "deleted"
        )
        .distinct()
        .order_by(documents.c.domain)
        .limit(MAX_DOMAINS)
    )
    return [row["domain"] for row in rows]
