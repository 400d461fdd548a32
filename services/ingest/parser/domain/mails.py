"""E-mail with attachments as one document: the mail as Tika reads it, then each attachment.

Tika alone runs attachments into the body without their names, and says nothing about those that
it cannot read.
"""

import email
import email.errors
import email.header
import email.policy
import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from email.message import Message
from functools import partial
from pathlib import Path

from libs.documents.model import ParsedDocument
from libs.kernel import PermanentError
from services.ingest.parser.domain.archives import Budget, Contents, Member, MemberReader, collect
from services.ingest.parser.domain.refusals import refusal

MAX_MAIL_BYTES = 100_000_000  # parsed in memory
# What every kind of address can hold; it keeps bytes of undeclared encodings as they are.
_POLICY = email.policy.compat32
# What the standard library raises for mails that break the rules, here and there.
_MALFORMED = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    RecursionError,
    email.errors.MessageError,
)


def read_mail(
    path: Path,
    body: Callable[[Path], ParsedDocument],
    read: MemberReader,
    budget: Budget,
    max_chars: int,
) -> ParsedDocument:
    """The mail in a file, its own text by `body`, its attachments by `read`.

    An attachment that cannot be read is named in the warnings. Raises: PermanentError as
    `read_archive` does, and what `body` refuses a mail for that has no attachments.
    """
    if path.stat().st_size > MAX_MAIL_BYTES:
        return body(path)
    try:
        with path.open("rb") as file:
            mail = email.message_from_binary_file(file, policy=_POLICY)
        attachments = list(_taken_out(mail))
        rest = mail.as_bytes() if attachments else b""
    except _MALFORMED:
        document = body(path)
        warning = "the mail is malformed: attachments may be missing, or run into its text"
        return replace(document, warnings=[*document.warnings, warning])
    if not attachments:
        return body(path)
    contents = Contents(max_chars, "message/rfc822", level=2)
    try:
        contents.add_own(_own_text(rest, path, body))
    except PermanentError as exc:
        if exc.reason != "empty":
            raise
    collect(contents, map(_member, attachments), path.parent, read, budget)
    return contents.document()


def _own_text(rest: bytes, path: Path, body: Callable[[Path], ParsedDocument]) -> ParsedDocument:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        stripped = Path(folder) / "mail.eml"
        stripped.write_bytes(rest)
        return body(stripped)


def _taken_out(mail: Message, depth: int = 0) -> Iterator[Message]:
    """The attachments, which the mail then no longer holds."""
    parts = mail.get_payload()
    if mail.get_content_maintype() != "multipart" or not isinstance(parts, list) or depth > 20:
        return
    if mail.get_content_subtype() in {"encrypted", "signed"}:  # parts that belong together
        return
    kept: list[Message | str] = []
    for part in parts:
        if not isinstance(part, Message):
            continue
        if _is_attachment(part):
            yield part
        else:
            yield from _taken_out(part, depth + 1)
            kept.append(part)
    mail.set_payload(kept)


def _is_attachment(part: Message) -> bool:
    if part.get_content_maintype() == "multipart":
        return False
    if part.get_content_type() in {"message/rfc822", "application/pkcs7-mime"}:
        return part.get_content_type() == "message/rfc822"
    disposition = part.get_content_disposition()
    if disposition == "inline" and part.get_content_maintype() in {"image", "text"}:
        return False  # belongs to the body
    return disposition == "attachment" or bool(part.get_filename())


def _member(part: Message) -> Member:
    return Member(_name(part), open=partial(_opened, part))


def _opened(part: Message) -> io.BytesIO:
    try:
        return io.BytesIO(_content(part))
    except _MALFORMED as exc:
        raise refusal("corrupt") from exc


def _content(part: Message) -> bytes:
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload()
        if not isinstance(inner, list) or not inner or not isinstance(inner[0], Message):
            raise refusal("corrupt")
        return inner[0].as_bytes()
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        raise refusal("corrupt")
    return data


def _name(part: Message) -> str:
    name = None
    with suppress(*_MALFORMED):
        name = part.get_filename()
        if name:
            pieces = email.header.decode_header(name)
            return str(email.header.make_header(pieces)).replace("\n", " ")
    if name:
        return name
    return "mail.eml" if part.get_content_type() == "message/rfc822" else "attachment"
