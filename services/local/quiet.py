"""Whether the platform is doing nothing just now, read from SQL without disturbing anybody."""

import sqlite3

from services.local.settings import LocalSettings

_BUSY = """
    SELECT EXISTS (SELECT 1 FROM outbox WHERE sent_at IS NULL)
        OR EXISTS (SELECT 1 FROM documents WHERE state IN ('uploaded', 'parsed', 'chunked'))
        OR EXISTS (SELECT 1 FROM turns WHERE state IN ('requested', 'planned'))
"""


def is_quiet(settings: LocalSettings) -> bool:
    """No unsent event, no unfinished document, no unfinished turn. Unknown counts as busy."""
    if settings.database_url:
        return False
    try:
        connection = sqlite3.connect(f"file:{settings.home / 'sluice.db'}?mode=ro", uri=True)
    except sqlite3.Error:
        return False
    try:
        busy = connection.execute(_BUSY).fetchone()[0]
    except sqlite3.Error:
        return False
    finally:
        connection.close()
    return not busy
