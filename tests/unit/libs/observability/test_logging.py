import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import structlog

from libs.observability import (
    configure_logging,
    message_context,
    service_name,
    set_service_name,
    tracing,
)
from libs.observability.logging import MAX_TEXT_CHARS, redact


@dataclass(frozen=True)
class Message:
    group: str
    topic: str
    partition: int
    offset: int
    event_id: str


class Lines(io.StringIO):
    def read_all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]


@pytest.fixture
def lines() -> Iterator[Lines]:
    root = logging.getLogger()
    before = service_name(), root.handlers[:], root.level
    stream = Lines()
    configure_logging("parser", "INFO", stream=stream)
    yield stream
    structlog.reset_defaults()
    set_service_name(before[0])
    root.handlers[:], root.level = before[1], before[2]


def log() -> Any:
    return structlog.get_logger("test")


def test_a_line_is_one_json_object_with_the_service(lines: Lines) -> None:
    log().info("document_parsed", char_count=12, name="条例.pdf")
    (line,) = lines.read_all()
    assert line["event"] == "document_parsed"
    assert (line["service"], line["level"], line["logger"]) == ("parser", "info", "test")
    assert (line["char_count"], line["name"]) == (12, "条例.pdf")
    assert line["timestamp"].endswith("Z")


def test_a_line_names_the_message_and_the_trace_it_belongs_to(lines: Lines) -> None:
    token = message_context.set(Message("parser", "documents.uploaded.v1", 3, 17, "e1"))
    try:
        with tracing.span("parse") as context:
            log().info("document_parsed")
    finally:
        message_context.reset(token)
    log().info("worker_stopped")
    inside, outside = lines.read_all()
    assert inside["trace_id"] == context.trace_id
    assert (inside["topic"], inside["partition"], inside["offset"]) == (
        "documents.uploaded.v1",
        3,
        17,
    )
    assert (inside["group"], inside["event_id"]) == ("parser", "e1")
    assert not {"topic", "trace_id"} & outside.keys()


def test_what_is_below_the_level_is_not_written(lines: Lines) -> None:
    log().debug("tick")
    logging.getLogger("some.library").debug("tick")
    assert lines.read_all() == []


def test_lines_of_libraries_look_the_same(lines: Lines) -> None:
    logging.getLogger("some.library").warning("lost %s of %d", "node", 3)
    (line,) = lines.read_all()
    assert (line["event"], line["level"], line["service"]) == (
        "lost node of 3",
        "warning",
        "parser",
    )


@pytest.mark.parametrize(
    "key",
    ["api_key", "llm_api_key", "Authorization", "password", "token", "access_token", "X-API-Key"],
)
def test_secret_keys_are_redacted_at_any_depth(lines: Lines, key: str) -> None:
    log().info("called", **{key: "s3cret", "headers": [{key: "s3cret"}]})
    assert "s3cret" not in lines.getvalue()
    (line,) = lines.read_all()
    assert line[key] == "[redacted]"


def test_counts_of_tokens_and_keys_of_records_are_not_secrets(lines: Lines) -> None:
    log().info("answered", tokens=12, token_count=3, key="d1", object_key="acme/d1")
    (line,) = lines.read_all()
    assert (line["tokens"], line["token_count"]) == (12, 3)
    assert (line["key"], line["object_key"]) == ("d1", "acme/d1")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Authorization: Bearer s3cret!", "Authorization: Bearer [redacted]"),
        ("mysql://sluice:s3cret@db/sluice", "mysql://sluice:[redacted]@db/sluice"),
        ("GET /?api_key=s3cret&n=1", "GET /?api_key=[redacted]&n=1"),
        ("password=s3cret", "password=[redacted]"),
        ("mysql://sluice:s3/cr@et@db/sluice", "mysql://sluice:[redacted]@db/sluice"),
        ("http://:s3cret;x,y@db", "http://:[redacted]@db"),
        ("milvus at http://127.0.0.1:19530 is away", "milvus at http://127.0.0.1:19530 is away"),
        ("X-API-Key: s3cret", "X-API-Key: [redacted]"),
        ("{'api_key': 's3cret'}", "{'api_key': '[redacted]'}"),
        ("got slk_abcdefgh-1234_x.", "got [redacted]."),
        ("key sk-proj-12345678 is wrong", "key [redacted] is wrong"),
    ],
)
def test_secrets_inside_texts_are_redacted(lines: Lines, text: str, kept: str) -> None:
    log().info("failed", detail=text)
    (line,) = lines.read_all()
    assert line["detail"] == kept


def refuse() -> None:
    raise ConnectionError("https://me:s3cret@host/ refused")


def test_a_traceback_is_written_without_its_secrets(lines: Lines) -> None:
    try:
        refuse()
    except ConnectionError:
        log().exception("call_failed")
    (line,) = lines.read_all()
    assert "ConnectionError: https://me:[redacted]@host/ refused" in line["exception"]
    assert "s3cret" not in lines.getvalue()


def test_values_that_json_does_not_know_are_still_logged(lines: Lines) -> None:
    log().info("odd", error=ValueError("x"), blob=b"1234", ids={"a"}, kind=int)
    (line,) = lines.read_all()
    assert (line["error"], line["blob"], line["ids"]) == ("ValueError('x')", "4 bytes", ["a"])
    assert line["kind"] == "<class 'int'>"


def test_a_huge_text_keeps_both_ends_and_costs_little() -> None:
    text = "Traceback " + "://a:" * 600_000 + " OSError: the cause"
    line = redact(None, "error", {"event": "failed", "exception": text})
    assert len(line["exception"]) < 2 * MAX_TEXT_CHARS
    assert line["exception"].startswith("Traceback ")
    assert line["exception"].endswith(" OSError: the cause")


FORGED = 'a\n{"event": "forged"}\r\u2028{"event": "forged"}\x85\x0b\x1b[2J\x9b31m\u202eb'


def test_no_text_begins_a_line_or_commands_a_terminal(lines: Lines) -> None:
    log().info(FORGED, name=FORGED, tags=[FORGED], **{FORGED: {"in": FORGED}})
    logging.getLogger("some.library").warning("lost %s", FORGED)
    assert not [c for c in lines.getvalue() if c != "\n" and not c.isprintable()]
    ours, theirs = lines.read_all()
    assert (ours["event"], ours["name"], ours["tags"]) == (FORGED, FORGED, [FORGED])
    assert ours[FORGED] == {"in": FORGED}
    assert theirs["event"] == f"lost {FORGED}"


def test_nor_where_a_person_reads_the_log(lines: Lines) -> None:
    configure_logging("parser", "INFO", stream=lines, json=False)
    says: list[Callable[[], None]] = [
        lambda: log().info(FORGED),
        lambda: log().info("parsed", name=FORGED),
        lambda: log().info("parsed", tags=[FORGED]),
        lambda: log().info("parsed", **{FORGED: 1}),
        lambda: logging.getLogger("some.library").warning("lost %s", FORGED),
    ]
    for count, say in enumerate(says, start=1):
        say()
        plain = re.sub(r"\x1b\[\d*m", "", lines.getvalue())
        assert len(plain.splitlines()) == count
        assert not [c for c in plain if c != "\n" and not c.isprintable()]
