"""What every HTTP service shares: problems, keys, Host check, limits, streams, health."""

from libs.web.app import new_app
from libs.web.auth import COOKIE, Admin, Member, PresentedKey, Reader, requires
from libs.web.filenames import attachment, clean_name
from libs.web.health import Missing
from libs.web.idempotency import IdempotencyKey
from libs.web.openapi import problems
from libs.web.problems import ProblemError, invalid, rate_limited, too_large
from libs.web.revocation import while_valid

__all__ = [
    "COOKIE",
    "Admin",
    "IdempotencyKey",
    "Member",
    "Missing",
    "PresentedKey",
    "ProblemError",
    "Reader",
    "attachment",
    "clean_name",
    "invalid",
    "new_app",
    "problems",
    "rate_limited",
    "requires",
    "too_large",
    "while_valid",
]
