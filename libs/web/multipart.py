"""multipart/form-data as a stream of parts: nothing is buffered but small fields."""

from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from libs.web.problems import invalid, unsupported_media

MAX_PARTS = 100
MAX_FIELD_BYTES = 64 * 1024
_ESCAPED = {"%22": '"', "%0D": "\r", "%0A": "\n"}  # what browsers escape in names, and no more
_MAX_HEADER_BYTES = 16 * 1024


@dataclass(slots=True)
class Part:
    """One part: a form field, or a file when it has a file name."""

    headers: dict[bytes, bytes] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self._disposition(b"name") or ""

    @property
    def filename(self) -> str | None:
        name = self._disposition(b"filename")
        for code, char in _ESCAPED.items():
            name = name.replace(code, char) if name is not None else None
        return name

    @property
    def media_type(self) -> str:
        return self.headers.get(b"content-type", b"").decode("latin-1").strip()

    def _disposition(self, key: bytes) -> str | None:
        value = parse_options_header(self.headers.get(b"content-disposition"))[1].get(key)
        return value.decode("utf-8", "replace") if value is not None else None


class MultipartReader:
    """Pulls parts from a request body, one at a time, in the order in which they were sent.

    Raises (every method): ProblemError 415, 422; whatever the body raises.
    """

    def __init__(self, content_type: str, body: AsyncIterator[bytes]) -> None:
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data":
            raise unsupported_media("Send the file as multipart/form-data, in a part named `file`.")
        if not options.get(b"boundary"):
            raise _malformed("its boundary is missing")
        self._body = body
        self._parsed: deque[Part | bytes | None] = deque()  # a part, its data, None at its end
        self._ended = False
        self._part_count = 0
        self._parser = self._new_parser(options[b"boundary"])

    async def next_part(self) -> Part | None:
        """The next part, skipping what was not read of the last one; None at the end."""
        while True:
            item = await self._next()
            if isinstance(item, Part):
                return item
            if item is None and self._ended and not self._parsed:
                return None

    async def data(self) -> AsyncIterator[bytes]:
        """The current part's content, in pieces of at most the size in which it arrives."""
        while (item := await self._next()) is not None:
            if isinstance(item, bytes):
                yield item

    async def text(self) -> str:
        """The current part's content as a form field."""
        value = bytearray()
        async for piece in self.data():
            value += piece
            if len(value) > MAX_FIELD_BYTES:
                raise invalid(
                    "field-too-long", f"A form field has at most {MAX_FIELD_BYTES} bytes."
                )
        try:
            return value.decode()
        except UnicodeDecodeError as exc:
            raise invalid("malformed-multipart", "Form fields must be UTF-8.") from exc

    async def _next(self) -> Part | bytes | None:
        while not self._parsed:
            if self._ended:
                return None
            piece = await anext(self._body, None)
            if piece is None:
                raise _malformed("it ends too early")
            try:
                self._parser.write(piece)
            except FormParserError as exc:
                raise _malformed(str(exc)) from exc
        return self._parsed.popleft()

    def _new_parser(self, boundary: bytes) -> MultipartParser:
        part, name, value = Part(), bytearray(), bytearray()

        def begin() -> None:
            nonlocal part
            part = Part()
            self._part_count += 1
            if self._part_count > MAX_PARTS:
                raise invalid("too-many-parts", f"A form has at most {MAX_PARTS} parts.")

        def header_end() -> None:
            part.headers[bytes(name).lower()] = bytes(value)
            name.clear()
            value.clear()

        def end() -> None:
            self._ended = True

        try:
            return MultipartParser(
                boundary,
                {
                    "on_part_begin": begin,
                    "on_header_field": lambda data, start, stop: name.extend(data[start:stop]),
                    "on_header_value": lambda data, start, stop: value.extend(data[start:stop]),
                    "on_header_end": header_end,
                    "on_headers_finished": lambda: self._parsed.append(part),
                    "on_part_data": lambda data, start, stop: self._parsed.append(data[start:stop]),
                    "on_part_end": lambda: self._parsed.append(None),
                    "on_end": end,
                },
                max_header_size=_MAX_HEADER_BYTES,
            )
        except FormParserError as exc:
            raise _malformed(str(exc)) from exc


def _malformed(why: str) -> Exception:
    return invalid("malformed-multipart", f"The multipart body cannot be read: {why}.")
