from libs.eventbus.subscriptions import MAX_DETAIL_CHARS, Failure


def test_a_failures_detail_always_fits_into_an_event() -> None:
    assert Failure("bug", "short", 1, permanent=False).detail == "short"
    long = Failure("bug", "x" * 2_000_000, 1, permanent=False)
    assert len(long.detail) == MAX_DETAIL_CHARS
    assert long.detail.endswith("…")


def test_its_detail_shows_no_password() -> None:
    said = "TransientError: milvus at http://root:s3cret@host:19530 cannot do this now"
    assert "s3cret" not in Failure("retries-exhausted", said, 5, permanent=False).detail
