"""What every HTTP service shares: problems, keys, Host check, limits, streams, health."""

from libs.web.app import new_app
from libs.web.auth import (
    COOKIE,
    Admin,
    Member,
    PresentedKey,
    Reader,
    current_principal,
    requires,
)
from libs.web.filenames import attachment, clean_name
from libs.web.health import Missing, health_routes
from libs.web.idempotency import IdempotencyKey
from libs.web.openapi import Problem, problems
from libs.web.problems import (
    ProblemError,
    forbidden,
    invalid,
    problem,
    rate_limited,
    too_large,
    unauthenticated,
    unsupported_media,
)
from libs.web.revocation import while_valid

__all__ = [
    "COOKIE",
    "Admin",
    "IdempotencyKey",
    "Member",
    "Missing",
    "PresentedKey",
    "Problem",
    "ProblemError",
    "Reader",
    "attachment",
    "clean_name",
    "current_principal",
    "forbidden",
    "health_routes",
    "invalid",
    "new_app",
    "problem",
    "problems",
    "rate_limited",
    "requires",
    "too_large",
    "unauthenticated",
    "unsupported_media",
    "while_valid",
]
