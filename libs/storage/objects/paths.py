"""How an object key becomes a safe file path, and back.

A key is one to many segments joined by `/`. On disk every character outside `a-z 0-9 _ - .` is
percent-encoded (capital letters too, for file systems that ignore case), and a segment too long
for a file name goes on in a folder below, marked by `~`, so the mapping can always be undone.
"""

import re
from urllib.parse import unquote

MAX_KEY_BYTES = 1024  # as in S3
MAX_NAME_BYTES = 200

_UNSAFE = re.compile(r"[^a-z0-9_.-]|^\.")


def check_key(key: str) -> list[str]:
    """The segments of a key, each of which may be a name.

    Raises: ValueError for keys with an empty, `.` or `..` segment or of more than 1024 bytes.
    """
    if len(key.encode()) > MAX_KEY_BYTES:
        raise ValueError(f"object key longer than {MAX_KEY_BYTES} bytes")
    segments = key.split("/")
    if any(segment in {"", ".", ".."} for segment in segments):
        raise ValueError(f"object key with an empty or dotted segment: {key!r}")
    return segments


def key_to_path(key: str) -> str:
    """The relative path of a key. Raises: ValueError for what is no key."""
    return "/".join(_encode(segment) for segment in check_key(key))


def path_to_key(path: str) -> str:
    """The key whose relative path this is."""
    return unquote(path.replace("~/", ""))


def _encode(segment: str) -> str:
    name = _UNSAFE.sub(lambda found: percent(found[0]), segment)
    parts = [name[i : i + MAX_NAME_BYTES] for i in range(0, len(name), MAX_NAME_BYTES)]
    return "~/".join(parts)


def percent(text: str) -> str:
    """The text with each byte of its UTF-8 as `%xx`."""
    return "".join(f"%{byte:02x}" for byte in text.encode())
