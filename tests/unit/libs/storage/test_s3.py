"""What of the S3 store needs no server: names, policies, settings."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.kernel import PermanentError, TransientError
from libs.service.objects import open_objects
from libs.service.settings import PlatformSettings
from libs.storage.objects import DiskObjectStore
from libs.storage.objects.s3_bucket import public_actions
from libs.storage.objects.s3_names import (
    MAX_PART_BYTES,
    key_to_name,
    name_to_key,
    prefix_to_name,
)
from tests.ports import free_port
from tests.waiting import until

segments = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1)
keys = st.lists(segments.filter(lambda s: s not in {".", ".."}), min_size=1, max_size=4).map(
    "/".join
)
dotted = st.text("a.~%\\长", min_size=200, max_size=300)  # many parts, at any of their borders


@given(keys | dotted)
def test_every_key_has_a_name_that_servers_take_and_comes_back(key: str) -> None:
    name = prefix_to_name(key)
    assert name_to_key(name) == key
    for part in name.split("/"):
        assert 0 < len(part.encode()) <= MAX_PART_BYTES + 1  # and the `~`
        assert part not in {".", ".."}
        assert not any(character < " " or character in "\\\x7f" for character in part)


@given(keys | dotted, st.data())
def test_names_start_alike_exactly_when_keys_do(key: str, data: st.DataObject) -> None:
    prefix = key[: data.draw(st.integers(0, len(key)))]
    other = data.draw(keys)
    assert prefix_to_name(key).startswith(prefix_to_name(prefix))
    assert prefix_to_name(key).startswith(prefix_to_name(other)) == key.startswith(other)


def test_ordinary_keys_are_their_own_names() -> None:
    assert key_to_name("acme/01ja2b/1/text.txt") == "acme/01ja2b/1/text.txt"


def test_a_key_too_long_for_s3_is_refused() -> None:
    with pytest.raises(ValueError, match="object key too long"):
        key_to_name("%" * 1000)


EVERYBODY: list[Any] = ["*", {"AWS": "*"}, {"AWS": ["arn:aws:iam::1:root", "*"]}]


@pytest.mark.parametrize("principal", EVERYBODY)
def test_what_a_policy_allows_everybody_is_found(principal: Any) -> None:
    statement = {"Effect": "Allow", "Principal": principal, "Action": "s3:GetObject"}
    listing = {**statement, "Action": ["s3:ListBucket", "s3:GetObject"]}
    assert public_actions(json.dumps({"Statement": statement})) == ["s3:GetObject"]
    both = public_actions(json.dumps({"Statement": [statement, listing]}))
    assert both == ["s3:GetObject", "s3:ListBucket"]


@pytest.mark.parametrize(
    "differs",
    [
        {"Effect": "Deny"},
        {"Principal": {"AWS": "arn:aws:iam::1:user/sluice"}},
        {"Condition": {"StringEquals": {"aws:SourceVpce": "vpce-1"}}},
    ],
)
def test_what_a_policy_allows_some_or_denies_is_not_public(differs: dict[str, Any]) -> None:
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:*"} | differs
    assert public_actions(json.dumps({"Statement": [statement]})) == []


def settings(**changed: Any) -> PlatformSettings:
    s3 = {
        "s3_endpoint": f"http://127.0.0.1:{free_port()}",
        "s3_bucket": "sluice",
        "s3_access_key": "key",
        "s3_secret_key": "secret",
    }
    return PlatformSettings(**(s3 | changed))


async def test_without_an_endpoint_objects_are_files() -> None:
    async with open_objects(settings(s3_endpoint=None)) as store:
        assert isinstance(store, DiskObjectStore)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"s3_secret_key": None}, "S3_SECRET_KEY"),
        ({"s3_access_key": ""}, "S3_ACCESS_KEY"),
        ({"s3_endpoint": "minio:9000"}, "S3_ENDPOINT"),
        ({"s3_endpoint": "http://minio:9000/bucket"}, "S3_ENDPOINT"),
        ({"s3_endpoint": "http://minio:port"}, "S3_ENDPOINT"),
        ({"s3_public_endpoint": "files.example.com"}, "S3_PUBLIC_ENDPOINT"),
        ({"s3_bucket": "Not A Bucket"}, "S3_BUCKET"),
    ],
)
async def test_settings_that_cannot_be_right_are_named(changed: dict[str, Any], named: str) -> None:
    with pytest.raises(PermanentError, match=named):
        async with open_objects(settings(**changed)):
            pass


async def test_a_server_that_is_not_there_is_reported_and_every_use_transient() -> None:
    said: list[str | None] = []
    async with open_objects(settings(), said.append) as store:
        await until(lambda: len(said) > 1)
        for use in (store.put("t/k", b"x"), store.get("t/k"), store.keys(""), store.sweep()):
            with pytest.raises(TransientError, match="cannot be reached") as caught:
                await use
            assert caught.value.missing == "objects"
    assert set(said) == {"objects"}
    assert "secret" not in repr(settings())
