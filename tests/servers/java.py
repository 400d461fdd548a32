"""A Java that is new enough for a server."""

import os
import re
from pathlib import Path

from tests.servers.frame import MissingServerError


def java_home(at_least: int) -> Path:
    """JAVA_HOME, or the newest under `/usr/lib/jvm` or beside. Raises: MissingServerError."""
    places = [Path(os.environ.get("JAVA_HOME", "/nowhere"))]
    for folder in (Path("/usr/lib/jvm"), Path("/opt"), Path("/Library/Java/JavaVirtualMachines")):
        places += folder.glob("*") if folder.is_dir() else []
    homes = [home for place in places for home in (place, place / "Contents" / "Home")]
    found = {home: version for home in homes if (version := _version(home)) >= at_least}
    if not found:
        raise MissingServerError(f"install Java {at_least} or newer, or set JAVA_HOME to one")
    return max(found, key=lambda home: found[home])


def _version(home: Path) -> int:
    """The major version by the file that every JDK has; 0: none is here."""
    try:
        release = (home / "release").read_text()
    except OSError:
        return 0
    stated = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    return int(stated[1]) if stated and (home / "bin" / "java").exists() else 0
