"""One file to one document: choose who reads it, read it, judge what came out."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from libs.documents.builder import BlockBuilder, TooLongError
from libs.documents.encodings import decode_text
from libs.documents.markdown import read_markdown
from libs.documents.model import BlockKind, ParsedDocument
from libs.documents.normalise import replacement_share
from libs.documents.plain import read_plain
from libs.documents.tables import read_csv
from services.ingest.parser.domain.accounting import shortfalls
from services.ingest.parser.domain.archives import Budget, read_archive
from services.ingest.parser.domain.mails import read_mail
from services.ingest.parser.domain.refusals import refusal
from services.ingest.parser.domain.sniffing import Reader, choose_reader, is_cut_off

MAX_REPLACEMENT_SHARE = 0.05

FileReader = Callable[[Path, int], ParsedDocument]  # of a path, with the most characters


def read_document(
    path: Path,
    name: str,
    media_type: str,
    *,
    max_chars: int,
    tika: FileReader,
    picture: FileReader | None = None,
) -> ParsedDocument:
    """The document in a file; `name` and `media_type` are hints.

    `picture` recognises the text on image files; without it they are refused.

    Raises: PermanentError with one of the reasons in `refusals`.
    """
    budget = Budget.for_file(path.stat().st_size)
    return _Reading(max_chars, tika, picture).read(path, name, budget, media_type)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One upload with everything inside it."""

    max_chars: int
    tika: FileReader
    picture: FileReader | None

    def read(self, path: Path, name: str, budget: Budget, media_type: str = "") -> ParsedDocument:
        reader = choose_reader(path, name, media_type)
        if reader is Reader.ARCHIVE:
            return read_archive(path, name, self.read, budget, self.max_chars)
        if reader is Reader.MAIL:
            return read_mail(path, self._read_tika, self.read, budget, self.max_chars)
        if reader is Reader.PICTURE:
            if self.picture is None:
                raise refusal("no-text-layer")
            return self.picture(path, self.max_chars)
        if reader is Reader.TIKA:
            return self._read_tika(path)
        if path.stat().st_size > 4 * self.max_chars:
            raise refusal("too-large")
        return _judged(_read_text(reader, decode_text(path.read_bytes()), self.max_chars))

    def _read_tika(self, path: Path) -> ParsedDocument:
        return _judged(self._with_tika(path))

    def _with_tika(self, path: Path) -> ParsedDocument:
        document = self.tika(path, self.max_chars)
        warnings = [*document.warnings, *shortfalls(path, document.text, document.blocks)]
        if is_cut_off(path):
            warnings.append("the file is damaged or cut off: text may be missing")
        return replace(document, warnings=warnings)


def _read_text(reader: Reader, source: str, max_chars: int) -> ParsedDocument:
    if len(source) > max_chars:
        raise refusal("too-large")
    match reader:
        case Reader.MARKDOWN:
            text, blocks = read_markdown(source)
            media_type = "text/markdown"
        case Reader.CSV:
            builder = BlockBuilder(max_chars)
            try:
                builder.add(BlockKind.TABLE, read_csv(source))
            except TooLongError as exc:
                raise refusal("too-large") from exc
            text, blocks, media_type = builder.text, builder.blocks, "text/csv"
        case _:
            text, blocks = read_plain(source)
            media_type = "text/plain"
    tables = sum(block.kind is BlockKind.TABLE for block in blocks)
    return ParsedDocument(text=text, blocks=blocks, media_type=media_type, table_count=tables)


def _judged(document: ParsedDocument) -> ParsedDocument:
    if not document.text.strip():
        raise refusal("empty")
    share = replacement_share(document.text)
    if share > MAX_REPLACEMENT_SHARE:
        raise refusal("undecodable-text")
    if share:
        warning = f"{share:.2%} of the characters could not be read"
        return replace(document, warnings=[*document.warnings, warning])
    return document
