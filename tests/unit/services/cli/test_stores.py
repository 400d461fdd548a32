"""Commands that open the stores themselves say what is wrong with them."""

from pathlib import Path
from typing import Any

import pytest

from libs.storage.sql import open_database
from libs.storage.sql.active_index import ActiveIndex, read_or_make
from services.cli.errors import CliError, ExitCode
from services.cli.settings import CliSettings
from services.cli.stores import open_stores
from tests.ports import free_port


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    db = open_database(f"sqlite+aiosqlite:///{tmp_path / 'sluice.db'}")
    await db.create_schema()
    await read_or_make(db, ActiveIndex("model", "vectors", "keywords"), analyser=1)
    await db.close()
    return tmp_path


def settings(home: Path, **changed: Any) -> CliSettings:
    values: dict[str, Any] = {
        "home": home,
        "s3_endpoint": f"http://127.0.0.1:{free_port()}",
        "s3_access_key": "key",
        "s3_secret_key": "secret",
    }
    return CliSettings(**(values | changed))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"s3_secret_key": ""}, "S3_SECRET_KEY"),
        ({"s3_endpoint": "minio:9000"}, "S3_ENDPOINT"),
        ({"embed_base_url": "http://127.0.0.1:9/v1"}, "EMBED_MODEL"),
    ],
)
async def test_settings_that_cannot_be_right_are_a_usage_error(
    home: Path, changed: dict[str, Any], named: str
) -> None:
    with pytest.raises(CliError, match=named) as caught:
        async with open_stores(settings(home, **changed)):
            pass
    assert caught.value.code is ExitCode.USAGE


async def test_an_object_store_that_is_away_is_named(home: Path) -> None:
    with pytest.raises(CliError, match=r"a store is away: .* cannot be reached") as caught:
        async with open_stores(settings(home)) as stores:
            await stores.objects.keys("")
    assert caught.value.code is ExitCode.UNREACHABLE
