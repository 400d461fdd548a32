"""Whether a folder's disk takes writes, and the errors of one that does not."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from libs.kernel import DiskError, TransientError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NOT_WRITABLE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO})
# What libraries in other languages put into their texts; "permission denied" means other things.
_TEXTS = {os.strerror(number): number for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)}


def disk_error(exc: BaseException, what: str) -> DiskError | None:
    """The DiskError that a failed read or write of `what` is; None: the disk is not why."""
    number = exc.errno if isinstance(exc, OSError) else None
    if number in _FULL or number in _NOT_WRITABLE:
        return DiskError(_said(exc, what), full=number in _FULL)
    return None


def file_error(exc: OSError, what: str) -> TransientError:
    """What a failed read or write of `what` is to the platform: a DiskError if the disk is why."""
    return disk_error(exc, what) or TransientError(_said(exc, what))


def error_in_words(text: str) -> TransientError:
    """The same for an error of which there is only a text."""
    for words, number in _TEXTS.items():
        if words.lower() in text.lower():
            return DiskError(text, full=number in _FULL)
    return TransientError(text)


def _said(exc: BaseException, what: str) -> str:
    return f"{what}: {getattr(exc, 'strerror', None) or exc}"


@dataclass(frozen=True, slots=True)
class Room:
    """The room on a folder's disk, of which the last `reserve_bytes` are not for new things.

    Work that was accepted needs them to come to its end, and deletions to make room.
    """

    folder: Path
    reserve_bytes: int = 0

    def lack(self, wanted_bytes: int = 0) -> DiskError | None:
        """Why no more than this may be stored; None: it may. The folder need not be there yet."""
        try:
            disk = os.statvfs(self.folder)
        except FileNotFoundError:
            return None
        except OSError as exc:
            return DiskError(f"{self.folder}: {exc.strerror}", full=False)
        free_bytes = disk.f_bavail * disk.f_frsize
        if not os.access(self.folder, os.W_OK):
            return DiskError(f"{self.folder} cannot be written", full=False)
        if free_bytes < self.reserve_bytes + wanted_bytes:
            left = f"{free_bytes} bytes are free, {self.reserve_bytes} are kept so"
            return DiskError(f"{self.folder} has no room for {wanted_bytes}: {left}", full=True)
        if disk.f_files and not disk.f_favail:
            return DiskError(f"no more files fit in {self.folder}", full=True)
        return None

    def check(self, wanted_bytes: int = 0) -> None:
        """Raises: DiskError: so much more may not be stored."""
        if lack := self.lack(wanted_bytes):
            raise lack
