"""ZIP-based documents that unpack to far more than they are worth, told by their own lists.

A list may lie: what it hides still meets the bounds on the child's memory and time.
"""

import zipfile
from pathlib import Path

MAX_UNPACKED_BYTES = 500_000_000
MAX_RATIO = 100  # of text and markup; documents are packed to a tenth, at best to a fortieth
_UNSUSPICIOUS_BYTES = 1_000_000
_READ_AS_TEXT = (".xml", ".rels", ".html", ".xhtml", ".htm", ".opf", ".ncx", ".txt", ".json")


def is_bomb(path: Path) -> bool:
    """Whether the file is a ZIP archive that should not be unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False
    if sum(member.file_size for member in members) > MAX_UNPACKED_BYTES:
        return True
    return any(_expands(member) for member in members)


def _expands(member: zipfile.ZipInfo) -> bool:
    return (
        member.filename.lower().endswith(_READ_AS_TEXT)
        and member.file_size > _UNSUSPICIOUS_BYTES
        and member.file_size > MAX_RATIO * member.compress_size
    )
