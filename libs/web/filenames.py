"""Names of uploaded files, as they are stored, shown and sent back."""

import re
import unicodedata
from urllib.parse import quote

from libs.kernel import printable
from libs.kernel.printing import JOINERS

MAX_NAME_CHARS = 255
DEFAULT_NAME = "unnamed"
_SUFFIX = re.compile(r"\.[0-9A-Za-z]{1,16}\Z")


def clean_name(raw: str | None) -> str:
    """A name safe to store and show: its last path part, without control characters.

    Letters of every script and 4-byte characters stay. Control, format (bidirectional
    overrides hide a file's real suffix; joiners stay) and surrogate characters go. At most 255
    code points, the suffix kept; nothing left: `unnamed`.
    """
    name = unicodedata.normalize("NFC", raw or "")
    name = re.split(r"[/\\]", printable(name))[-1].strip()
    if not name.strip(". " + JOINERS):
        return DEFAULT_NAME
    if len(name) > MAX_NAME_CHARS:
        suffix = _SUFFIX.search(name)
        ending = suffix.group() if suffix is not None else ""
        name = name[: MAX_NAME_CHARS - len(ending)].rstrip() + ending
    return name


def attachment(name: str) -> str:
    """A Content-Disposition that makes browsers save, never show, a file of this name.

    Source: RFC 6266 and RFC 8187.
    """
    plain = "".join(char if " " <= char <= "~" and char not in '"\\%' else "_" for char in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
