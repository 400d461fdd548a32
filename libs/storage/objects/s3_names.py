"""How an object key becomes a name that S3 servers keep and list unchanged, and back.

Names stay readable: only what no listing can hold, and what MinIO takes for a folder's, is
percent-encoded. MinIO keeps each part of a name as a file's, so a longer one goes on in a part
below, marked by `~`.
"""

import re

from libs.storage.objects.paths import check_key, path_to_key, percent

MAX_NAME_BYTES = 1024  # S3's
MAX_PART_BYTES = 240  # of the 255 that file systems take

_UNSAFE = re.compile(r"[%~\\\x00-\x1f\x7f\ufffe\uffff]")


def key_to_name(key: str) -> str:
    """Raises: ValueError for what is no key, and for one whose name is longer than S3's are."""
    check_key(key)
    name = prefix_to_name(key)
    if len(name.encode()) > MAX_NAME_BYTES:
        raise ValueError(f"object key too long for S3: {key[:50]!r}…")
    return name


def prefix_to_name(prefix: str) -> str:
    """What the names of exactly those keys start with that start with `prefix`."""
    return "/".join(_encode(segment) for segment in prefix.split("/"))


def name_to_key(name: str) -> str:
    return path_to_key(name)


def _encode(segment: str) -> str:
    parts, size_bytes = [""], 0
    for character in segment:
        unsafe = _UNSAFE.match(character)
        piece = percent(character) if unsafe else character
        if size_bytes + len(piece.encode()) > MAX_PART_BYTES:
            parts.append("")
            size_bytes = 0
        if character == "." and not parts[-1]:
            piece = "%2e"  # a part of dots alone is a way out of the folder
        parts[-1] += piece
        size_bytes += len(piece.encode())
    return "~/".join(parts)
