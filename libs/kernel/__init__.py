"""Errors, ids, clock, principal and the end of tasks; standard library only."""

from libs.kernel.clock import isoformat, now_us
from libs.kernel.errors import (
    ConflictError,
    DiskError,
    NotFoundError,
    PermanentError,
    SluiceError,
    TransientError,
)
from libs.kernel.ids import chunk_id, made_at_us, new_id, stable_partition
from libs.kernel.principal import ROLES, Principal
from libs.kernel.printing import escape_hidden, is_hidden, printable
from libs.kernel.tasks import end_tasks, look_at, set_within, to_its_end

__all__ = [
    "ROLES",
    "ConflictError",
    "DiskError",
    "NotFoundError",
    "PermanentError",
    "Principal",
    "SluiceError",
    "TransientError",
    "chunk_id",
    "end_tasks",
    "escape_hidden",
    "is_hidden",
    "isoformat",
    "look_at",
    "made_at_us",
    "new_id",
    "now_us",
    "printable",
    "set_within",
    "stable_partition",
    "to_its_end",
]
