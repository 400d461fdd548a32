import errno
import os
from pathlib import Path

import pytest

from libs.kernel import DiskError
from libs.storage.sql import Database, api_keys
from services.local.prepare import LOCAL_TENANT, make_api_key
from services.local.settings import LocalSettings


async def tenant_of_the_file(db: Database, settings: LocalSettings) -> str | None:
    async with db.reading() as sql:
        clear = settings.api_key_file.read_text().strip()
        principal = await api_keys.authenticate(sql, clear)
    return principal.tenant if principal else None


async def test_the_first_start_makes_a_private_key_and_later_ones_keep_it(
    db: Database, tmp_path: Path
) -> None:
    settings = LocalSettings(home=tmp_path)
    await make_api_key(db, settings)
    first = settings.api_key_file.read_text()
    assert await tenant_of_the_file(db, settings) == LOCAL_TENANT
    assert settings.api_key_file.stat().st_mode & 0o777 == 0o600
    await make_api_key(db, settings)
    assert settings.api_key_file.read_text() == first


async def test_a_key_that_the_database_does_not_know_is_replaced(
    db: Database, tmp_path: Path
) -> None:
    settings = LocalSettings(home=tmp_path)
    settings.api_key_file.write_text("slk_of-another-database\n")
    await make_api_key(db, settings)
    assert await tenant_of_the_file(db, settings) == LOCAL_TENANT


async def test_without_room_for_the_file_no_key_is_made(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    settings = LocalSettings(home=tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", full)
        with pytest.raises(DiskError):
            await make_api_key(db, settings)
    async with db.reading() as sql:
        assert await api_keys.listing(sql, LOCAL_TENANT) == []
    await make_api_key(db, settings)
    assert await tenant_of_the_file(db, settings) == LOCAL_TENANT
