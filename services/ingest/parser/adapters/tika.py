"""Documents of what Tika extracts, judged and arranged."""

import re
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from libs.documents.builder import BlockBuilder, TooLongError
from libs.documents.headings import promote_headings, with_numbered_headings
from libs.documents.model import Block, BlockKind, ParsedDocument
from libs.documents.normalise import replacement_share
from libs.documents.page_layout import lay_over
from libs.documents.recognised import add_recognised
from libs.documents.reflow import reflow
from libs.documents.xhtml import (
    PictureReader,
    TooDeepError,
    TooManyPagesError,
    XhtmlTarget,
    read_xhtml,
)
from libs.kernel import PermanentError, TransientError
from libs.storage.room import disk_error
from services.ingest.parser.adapters.extraction import Extractor, Metadata
from services.ingest.parser.adapters.layout import page_layouts
from services.ingest.parser.adapters.ocr import PdfiumError, Recogniser, open_pictures
from services.ingest.parser.domain.ooxml import is_strict, write_transitional
from services.ingest.parser.domain.refusals import refusal
from services.ingest.parser.domain.slides import copy_blocks, slide_order, slides_as_pages
from services.ingest.parser.domain.sniffing import is_zip

_COMPLAINT_CHARS = 1000
_MIN_CHARS_PER_PAGE = 10  # fewer on average: the pages are pictures
_MAX_UNREADABLE_SHARE = 0.3  # of a page's characters: its fonts tell nothing
_CHARS_THAT_EXPLAIN_A_PICTURE = 200

_ENCRYPTED = re.compile(
    r"encrypted|x-tika-ooxml-protected|drm-|password|BEGIN PGP MESSAGE", re.IGNORECASE
)
_ENCRYPTED_TYPES = re.compile(r"x-tika-ooxml-protected|drm-encrypted|pgp-encrypted|pkcs7-mime")
_SHEET_TYPES = re.compile(r"spreadsheetml|ms-excel")
_FLOWING_TYPES = re.compile(r"html|epub")
_MAIL_TYPES = re.compile(r"message/rfc822|vnd\.ms-outlook")
_MAIL_FIELDS = {
    "From": "Message-From",
    "To": "Message-To",
    "Cc": "Message-Cc",
    "Date": "dcterms:created",
}
_PGP_MESSAGE = re.compile("-----BEGIN PGP MESSAGE-----.*?-----END PGP MESSAGE-----", re.DOTALL)
_MIN_CHARS_BESIDE_CIPHERTEXT = 400
_FAILURES = ("X-TIKA:EXCEPTION:warn", "X-TIKA:EXCEPTION:embedded_exception")
_TOO_DEEP = re.compile(r"levels of (?:XML element|package entry) nesting", re.IGNORECASE)
# Tika gave up on the ratio of what came out to what went in (TIKA-237 hides why).
_EXPANDS = re.compile(r"zip bomb|Illegal SAXException", re.IGNORECASE)
_NO_TEXT_TYPES = re.compile(r"^(?:image|audio|video|font|model)/")
_ARCHIVE_TYPES = re.compile(
    r"^application/(?:zip|x-7z-compressed|x-rar-compressed|x-tar|gzip|x-bzip2|x-xz|java-archive)"
)
_UNKNOWN_TYPES = {"application/octet-stream", "application/x-executable", ""}


def read_with_tika(
    path: Path, max_chars: int, recogniser: Recogniser | None = None, *, extractor: Extractor
) -> ParsedDocument:
    """The document in a file of any format that Tika knows; its scans by `recogniser`.

    Raises: PermanentError with one of the reasons in `refusals`; TransientError as `extractor`.
    """
    if is_strict(path):
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            common = Path(folder) / path.name
            _convert(path, common)
            return _read(common, max_chars, recogniser, extractor)
    return _read(path, max_chars, recogniser, extractor)


def _convert(path: Path, common: Path) -> None:
    try:
        write_transitional(path, common)
    except (zipfile.BadZipFile, OSError, NotImplementedError) as exc:
        raise disk_error(exc, str(common)) or refusal("corrupt") from exc
    except ValueError as exc:
        raise refusal("too-large") from exc


def _read(
    path: Path, max_chars: int, recogniser: Recogniser | None, extractor: Extractor
) -> ParsedDocument:
    builder, metadata, target = _extracted(path, max_chars, extractor)
    warnings: list[str] = []
    looked = False  # at every page without text
    if recogniser is not None and _first(metadata, "Content-Type").startswith("application/pdf"):
        builder, count = _with_scans(path, builder, recogniser)
        looked = count is not None and bool(builder.page_count)
        if count:
            warnings.append(f"{count} pages were read by text recognition, which makes mistakes")
    elif recogniser is not None and is_zip(path) and _is_mostly_pictures(builder, target):
        with open_pictures(path, recogniser) as pictures:
            builder, metadata, target = _extracted(path, max_chars, extractor, pictures)
    if recogniser is not None and recogniser.left_out:
        warnings.append(f"{recogniser.left_out} pictures over the limit were not read")
    _judge(path, metadata, builder, target, extractor, looked=looked)
    builder = _arranged(path, metadata, builder, target, max_chars, warnings)
    return _document(metadata, builder, target, warnings)


def _extracted(
    path: Path, max_chars: int, extractor: Extractor, pictures: PictureReader | None = None
) -> tuple[BlockBuilder, Metadata, XhtmlTarget]:
    builder = BlockBuilder(max_chars)
    try:
        pieces, metadata = extractor.extract(path, max_chars)
        _add_mail_header(metadata, builder)
        media_type = _first(metadata, "Content-Type")
        target = read_xhtml(
            pieces,
            builder,
            flowing=bool(_FLOWING_TYPES.search(media_type)),
            sheets=bool(_SHEET_TYPES.search(media_type)),
            pictures=pictures,
        )
    except TooLongError as exc:
        raise refusal("too-large") from exc
    except TooDeepError as exc:
        raise refusal("too-deep") from exc
    except TooManyPagesError as exc:
        raise refusal("too-many-pages") from exc
    except (PermanentError, TransientError):
        raise
    except Exception as exc:  # an ExtractionError, or XHTML that is none
        raise refusal(_reason_of(path, exc, extractor)) from exc
    if extractor.hides_failures(_first(metadata, "Content-Type")) and (
        said := extractor.complaint(path, max_chars)
    ):
        raise refusal(_reason(said))
    return builder, metadata, target


def _is_mostly_pictures(builder: BlockBuilder, target: XhtmlTarget) -> bool:
    visible = sum(map(len, builder.text.split()))
    return visible < _CHARS_THAT_EXPLAIN_A_PICTURE * target.image_count


def _with_scans(
    path: Path, builder: BlockBuilder, recogniser: Recogniser
) -> tuple[BlockBuilder, int | None]:
    """The document with its pages that have no text, or an unreadable one, recognised.

    Returns how many had something on them; None when the file could not be rendered.
    """
    text = builder.text
    pages: dict[int, list[Block]] = {n: [] for n in range(1, builder.page_count + 1)}
    for block in builder.blocks:
        if block.page is not None and block.kind is not BlockKind.PAGE_BREAK:
            pages[block.page].append(block)
    poor = [n for n, blocks in pages.items() if _is_poor(text, blocks)]
    if not poor:
        return builder, 0
    try:
        recognised = dict(recogniser.pages(path, poor))
    except PdfiumError:
        return builder, None
    if not recognised:
        return builder, 0
    arranged = BlockBuilder(builder.max_chars)
    try:
        for number, blocks in pages.items():
            arranged.page_break()
            if number in recognised:
                add_recognised(recognised[number], arranged)
            else:
                copy_blocks(text, blocks, arranged)
        arranged.page_ends()
        outside = [block for block in builder.blocks if block.page is None]
        copy_blocks(text, outside, arranged)
    except TooLongError as exc:
        raise refusal("too-large") from exc
    return arranged, len(recognised)


def _is_poor(text: str, blocks: Sequence[Block]) -> bool:
    """Whether a page's own text is none, or says nothing."""
    own = "".join(text[block.start : block.end] for block in blocks)
    visible = sum(map(len, own.split()))
    return visible < _MIN_CHARS_PER_PAGE or replacement_share(own) > _MAX_UNREADABLE_SHARE


def _reason_of(path: Path, error: Exception, extractor: Extractor) -> str:
    return _reason(f"{error} {extractor.complaint(path, _COMPLAINT_CHARS)}")


def _reason(message: str) -> str:
    if _ENCRYPTED.search(message):
        return "encrypted"
    if _TOO_DEEP.search(message):
        return "too-deep"
    if _EXPANDS.search(message):
        return "decompression-bomb"
    return "corrupt"


def _add_mail_header(metadata: Metadata, builder: BlockBuilder) -> None:
    """A mail's subject and people, which its body does not repeat."""
    if not _MAIL_TYPES.search(_first(metadata, "Content-Type")):
        return
    builder.add(BlockKind.HEADING, _first(metadata, "dc:title"), level=1)
    lines = [
        f"{name}: {', '.join(metadata[key])}"
        for name, key in _MAIL_FIELDS.items()
        if metadata.get(key)
    ]
    builder.add(BlockKind.PARAGRAPH, "\n".join(lines))


def _judge(
    path: Path,
    metadata: Metadata,
    builder: BlockBuilder,
    target: XhtmlTarget,
    extractor: Extractor,
    *,
    looked: bool,
) -> None:
    media_type = _first(metadata, "Content-Type")
    warnings = " ".join(metadata.get("X-TIKA:warning", ()))
    visible = sum(map(len, builder.text.split()))
    if _ENCRYPTED_TYPES.search(media_type) or (not visible and _ENCRYPTED.search(warnings)):
        raise refusal("encrypted")
    if _ARCHIVE_TYPES.search(media_type):  # sound ones are unpacked elsewhere
        raise refusal("corrupt" if is_zip(path) else "unsupported-archive")
    if media_type in _UNKNOWN_TYPES:
        raise refusal("unsupported")
    pages = _page_count(metadata, builder)
    if _NO_TEXT_TYPES.search(media_type) and not visible:
        raise refusal("no-text-layer" if media_type.startswith("image/") else "unsupported")
    enough = 1 if looked else _MIN_CHARS_PER_PAGE * (pages or 1)
    if media_type == "application/pdf" and visible < enough:
        raise refusal("no-text-layer")
    if not visible:
        failed = any(metadata.get(key) for key in _FAILURES)
        if not failed and target.image_count:
            raise refusal("no-text-layer")
        message = extractor.complaint(
            path, _COMPLAINT_CHARS
        )  # the stream may have kept a failure to itself
        raise refusal(_reason(message) if failed or message else "empty")
    if _only_ciphertext(builder.text):
        raise refusal("encrypted")


def _only_ciphertext(text: str) -> bool:
    """Whether next to a PGP message there is hardly anything one could read."""
    readable = _PGP_MESSAGE.sub("", text)
    return len(readable) < len(text) and len(readable) < _MIN_CHARS_BESIDE_CIPHERTEXT


def _arranged(
    path: Path,
    metadata: Metadata,
    builder: BlockBuilder,
    target: XhtmlTarget,
    max_chars: int,
    warnings: list[str],
) -> BlockBuilder:
    """The blocks as a reader of the original sees them: lines joined, slides in order."""
    media_type = _first(metadata, "Content-Type")
    if media_type.startswith("application/pdf"):
        builder = _with_layout(path, builder, max_chars, warnings)
        return reflow(builder.text, builder.blocks, max_chars)
    starts = target.slide_starts
    order = slide_order(path) if "presentationml" in media_type else None
    if starts and order is not None and len(order) == len(starts):
        end = len(builder.blocks) if target.slides_end is None else target.slides_end
        return slides_as_pages(builder.text, builder.blocks, starts, end, order, max_chars)
    return builder


def _with_layout(
    path: Path, builder: BlockBuilder, max_chars: int, warnings: list[str]
) -> BlockBuilder:
    """The blocks with the headings and ruled tables that the pages show."""
    try:
        pages = page_layouts(path)
        laid, missed = lay_over(builder.text, builder.blocks, builder.page_count, pages, max_chars)
    except PdfiumError:
        return builder
    except TooLongError as exc:
        raise refusal("too-large") from exc
    if missed:
        warnings.append(f"{missed} tables are given as lines of text")
    return laid


def _document(
    metadata: Metadata, builder: BlockBuilder, target: XhtmlTarget, warnings: list[str]
) -> ParsedDocument:
    text, blocks = builder.text, builder.blocks
    if _first(metadata, "Content-Type").startswith("application/pdf"):
        blocks = with_numbered_headings(text, blocks)
    elif not any(block.kind is BlockKind.HEADING for block in blocks):
        blocks = promote_headings(text, blocks)
    return ParsedDocument(
        text=text,
        blocks=blocks,
        media_type=_first(metadata, "Content-Type").partition(";")[0].strip(),
        title=_first(metadata, "dc:title") or None,
        language=_first(metadata, "dc:language") or _first(metadata, "language") or None,
        page_count=_page_count(metadata, builder),
        table_count=sum(block.kind is BlockKind.TABLE for block in blocks),
        warnings=[*warnings, *_warnings(metadata, builder, target)],
    )


def _warnings(metadata: Metadata, builder: BlockBuilder, target: XhtmlTarget) -> Iterator[str]:
    for key in ("X-TIKA:warning", *_FAILURES):
        for value in metadata.get(key, ()):
            yield value.split("\n")[0][:300]
    if builder.page_count:
        with_text = {block.page for block in builder.blocks if block.end > block.start}
        blank = builder.page_count - len(with_text - {None})
        if blank > 0:
            yield f"{blank} of {builder.page_count} pages have no text (blank or pictures)"
    if target.image_count:
        yield f"{target.image_count} pictures were not read"


def _page_count(metadata: Metadata, builder: BlockBuilder) -> int | None:
    if builder.page_count:
        return builder.page_count
    for key in ("xmpTPg:NPages", "meta:page-count", "meta:slide-count"):
        value = _first(metadata, key)
        if value.isdigit() and int(value) > 0:
            return int(value)
    return None


def _first(metadata: Metadata, key: str) -> str:
    values = metadata.get(key) or [""]
    return values[0]
