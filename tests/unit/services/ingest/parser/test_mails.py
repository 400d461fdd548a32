"""A mail's attachments are read one by one below their names, and those left out are named."""

from email import message_from_bytes
from email.message import EmailMessage
from pathlib import Path

import pytest

from libs.documents.builder import BlockBuilder
from libs.documents.model import BlockKind, ParsedDocument
from libs.kernel import PermanentError
from services.ingest.parser.domain.reading import read_document
from tests.parsed import shape


def body_reader(path: Path, max_chars: int) -> ParsedDocument:
    """Stands where Tika reads the mail: subject and every text part that is left in it."""
    mail = message_from_bytes(path.read_bytes())
    builder = BlockBuilder(max_chars)
    builder.add(BlockKind.HEADING, str(mail["Subject"]), level=1)
    for part in mail.walk():
        if part.get_content_maintype() == "text":
            payload = part.get_payload(decode=True)
            assert isinstance(payload, bytes)
            builder.add(BlockKind.PARAGRAPH, payload.decode(part.get_content_charset() or "utf-8"))
    return ParsedDocument(builder.text, builder.blocks, "message/rfc822")


def mail_with(*attachments: tuple[str, bytes]) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Plan", "a@example.com", "b@example.com"
    mail.set_content("See the files.")
    for name, data in attachments:
        mail.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return mail


def read(tmp_path: Path, mail: EmailMessage) -> ParsedDocument:
    path = tmp_path / "source.eml"
    path.write_bytes(bytes(mail))
    return read_document(path, "a.eml", "", max_chars=100_000, tika=body_reader)


def test_attachments_follow_the_body_below_their_names(tmp_path: Path) -> None:
    mail = mail_with(("年休假.md", "# 规则\n\n五天。".encode()), ("b.txt", "十天。".encode("gbk")))
    assert shape(read(tmp_path, mail)) == [
        ("h1", "Plan"),
        ("paragraph", "See the files."),
        ("h2", "年休假.md"),
        ("h3", "# 规则"),
        ("paragraph", "五天。"),
        ("h2", "b.txt"),
        ("paragraph", "十天。"),
    ]


def test_an_attachment_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    document = read(tmp_path, mail_with(("scan.png", b"\x89PNG\r\n\x1a\n\0"), ("c.txt", b"kept")))
    assert document.warnings == ["scan.png: not read (no-text-layer)"]
    assert document.text.endswith("kept")


def test_a_mail_inside_a_mail_is_read_with_its_own_attachments(tmp_path: Path) -> None:
    outer = mail_with()
    outer.add_attachment(mail_with(("inner.txt", b"deep down")))
    document = read(tmp_path, outer)
    assert ("h2", "mail.eml") in shape(document)
    assert ("h4", "inner.txt") in shape(document)
    assert document.text.endswith("deep down")


def test_a_mail_without_attachments_is_left_as_it_is(tmp_path: Path) -> None:
    assert shape(read(tmp_path, mail_with())) == [("h1", "Plan"), ("paragraph", "See the files.")]


def test_mails_nested_without_end_are_bounded(tmp_path: Path) -> None:
    mail = mail_with(("deepest.txt", b"never read"))
    for _ in range(6):
        outer = mail_with()
        outer.add_attachment(mail)
        mail = outer
    document = read(tmp_path, mail)
    assert "never read" not in document.text
    assert any("too-deep" in warning for warning in document.warnings)


def test_too_many_attachments(tmp_path: Path) -> None:
    mail = mail_with(*((f"{n}.txt", b"text") for n in range(1001)))
    with pytest.raises(PermanentError) as caught:
        read(tmp_path, mail)
    assert caught.value.reason == "too-many-files"


def test_a_malformed_mail_is_read_as_it_is_and_says_so(tmp_path: Path) -> None:
    data = bytes(mail_with(("a.txt", b"text")))
    boundary = data.split(b'boundary="')[1].split(b'"')[0]
    inner = b'Content-Type: multipart/mixed; boundary="no\xe5ne"\r\n\r\n\xe5\x8a\r\n--' + boundary
    path = tmp_path / "source.eml"
    path.write_bytes(data.replace(b"--" + boundary, b"--" + boundary + b"\r\n" + inner, 1))
    document = read_document(path, "a.eml", "", max_chars=100_000, tika=plain_body)
    assert "See the files." in document.text
    assert any("malformed" in warning for warning in document.warnings)


def plain_body(path: Path, max_chars: int) -> ParsedDocument:
    builder = BlockBuilder(max_chars)
    builder.add(BlockKind.PARAGRAPH, path.read_bytes().decode("latin-1"))
    return ParsedDocument(builder.text, builder.blocks, "message/rfc822")
