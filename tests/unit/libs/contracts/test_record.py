import re

import pytest

from libs.contracts import DocumentUploaded, TurnReply, decode, to_record
from libs.kernel import new_id
from libs.observability import tracing
from libs.observability.service import service_name, set_service_name

UPLOADED = DocumentUploaded("acme", "d1", 1, "a.txt", "text/plain", "acme/d1/original", 5)


def test_the_record_goes_to_its_topic_or_lane_under_its_key() -> None:
    record = to_record(UPLOADED)
    assert (record.topic, record.key, record.partition) == ("documents.uploaded.v1", "d1", None)
    assert decode(record.value) == UPLOADED
    assert to_record(UPLOADED, lane="urgent").topic == "documents.uploaded.v1.urgent"
    assert to_record(TurnReply("acme", "t1", 1, "delta", "{}"), partition=5).partition == 5


def test_an_unknown_lane_is_refused() -> None:
    with pytest.raises(ValueError, match="has no lane 'slow'"):
        to_record(UPLOADED, lane="slow")


def test_headers_are_cloud_events_and_the_current_trace() -> None:
    before = service_name()
    set_service_name("ingest")
    try:
        with tracing.span("upload", tracing.new(sampled=True)) as context:
            headers = to_record(UPLOADED).headers
    finally:
        set_service_name(before)
    assert headers["ce_type"] == "documents.uploaded.v1"
    assert headers["ce_source"] == "ingest"
    assert headers["traceparent"] == f"00-{context.trace_id}-{context.span_id}-01"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", headers["ce_time"])
    assert len(headers["ce_id"]) == len(new_id())


def test_every_record_has_an_id_of_its_own_and_outside_a_trace_a_trace_of_its_own() -> None:
    one, other = to_record(UPLOADED).headers, to_record(UPLOADED).headers
    assert one["ce_id"] != other["ce_id"]
    assert one["traceparent"] != other["traceparent"]
    assert one["traceparent"].endswith("-00")
