"""Text recognition (RapidOCR) for scans and pictures. In a child process only, as all reading.

Loading takes 2 s and some 600 MB, so it waits for the first picture that is not blank.
"""

import io
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pypdfium2
from PIL import Image, ImageOps
from pypdfium2 import PdfiumError

from libs.documents.builder import BlockBuilder, TooLongError
from libs.documents.headings import promote_headings
from libs.documents.model import BlockKind, ParsedDocument
from libs.documents.recognised import RecognisedLine, add_recognised
from libs.documents.reflow import reflow
from libs.documents.xhtml import PictureReader
from libs.storage.room import disk_error
from services.ingest.parser.adapters.pdf_pages import open_pages
from services.ingest.parser.domain.refusals import refusal

__all__ = ["PdfiumError", "Recogniser", "open_pictures", "read_picture"]

LONGEST_SIDE = 2000  # pixels; the recogniser scales larger pictures down itself
MAX_PIXELS = 100_000_000
MAX_FRAMES = 1000
_FORMATS = ("PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP", "ICO")
_DOTS_PER_POINT = 150 / 72
_SMALL_SIDE = 800  # a smaller picture is read at twice its size
_MIN_SIDE = 736  # the detector blows smaller pictures up to this, whatever that costs
_MIN_CONTRAST = 40  # of 255; below, a page is blank paper


_MIN_PICTURE = (60, 15)  # pixels; smaller ones are bullets and lines
_MAX_PICTURE_BYTES = 50_000_000


class PictureTooLargeError(ValueError):
    """More than MAX_PIXELS."""


@dataclass(slots=True)
class Recogniser:
    """Reads pictures one at a time.

    Args:
        going_on: Called before each picture; grants the time that it may take.
    """

    going_on: Callable[[], None]
    left_out: int = 0  # pictures of the upload beyond the limit
    _max_pictures: int = 0
    _engine: Any = None
    _read: int = field(default=0)

    def begin(self, max_pictures: int) -> None:
        """A new upload, of which at most so many pictures are read."""
        self._max_pictures = max_pictures
        self._read = self.left_out = 0

    def pages(
        self, path: Path, numbers: Collection[int]
    ) -> Iterator[tuple[int, list[RecognisedLine]]]:
        """What stands on these pages (from 1) of a PDF file; blank and damaged ones are
        left out.

        Raises: `pypdfium2.PdfiumError` for damaged files.
        """
        for number, page in open_pages(path, numbers):
            try:
                image = _render(page)
            except PdfiumError:
                continue
            if lines := self.picture(image):
                yield number, lines

    def frames(self, path: Path) -> Iterator[list[RecognisedLine]]:
        """What stands on each picture of an image file (TIFF files hold many).

        Raises: PictureTooLargeError; OSError, SyntaxError or ValueError for damaged files.
        """
        with Image.open(path, formats=_FORMATS) as image:
            count = getattr(image, "n_frames", 1) if image.format in {"TIFF", "MPO"} else 1
            for frame in range(min(count, MAX_FRAMES)):
                image.seek(frame)
                if image.width * image.height > MAX_PIXELS:
                    raise PictureTooLargeError
                image.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))  # JPEG: decoded smaller
                yield self.picture(_upright(image))

    def picture(self, image: Image.Image) -> list[RecognisedLine]:
        """The lines on an RGB picture; none when it is blank or over the limit of pictures."""
        if _is_blank(image):
            return []
        if self._read >= self._max_pictures:
            self.left_out += 1
            return []
        self._read += 1
        self.going_on()
        found = self._loaded()(_on_paper(image))
        if found.boxes is None or found.txts is None:
            return []
        return [
            RecognisedLine(
                text,
                float(box[:, 0].min()),
                float(box[:, 1].min()),
                float(box[:, 0].max()),
                float(box[:, 1].max()),
            )
            for box, text in zip(found.boxes, found.txts, strict=True)
        ]

    def _loaded(self) -> Any:
        if self._engine is None:
            from rapidocr import RapidOCR

            self._engine = RapidOCR(
                params={
                    "Global.log_level": "critical",
                    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
                    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
                }
            )
        return self._engine


def read_picture(path: Path, max_chars: int, recogniser: Recogniser) -> ParsedDocument:
    """The document on the pictures of an image file, each a page.

    Raises: PermanentError `no-text-layer`, `corrupt`, `out-of-memory`, `too-large`.
    """
    builder = BlockBuilder(max_chars)
    try:
        for lines in recogniser.frames(path):
            builder.page_break()
            add_recognised(lines, builder)
        with Image.open(path, formats=_FORMATS) as image:
            media_type = image.get_format_mimetype() or "image/*"
    except (PictureTooLargeError, Image.DecompressionBombError) as exc:
        raise refusal("out-of-memory") from exc
    except TooLongError as exc:
        raise refusal("too-large") from exc
    except (OSError, SyntaxError, ValueError) as exc:
        raise disk_error(exc, str(path)) or refusal("corrupt") from exc
    if not builder.text.strip():
        raise refusal("no-text-layer")
    joined = reflow(builder.text, builder.blocks, max_chars)
    warnings = ["the text was read by text recognition, which makes mistakes"]
    if recogniser.left_out:
        warnings.append(f"{recogniser.left_out} pictures over the limit were not read")
    return ParsedDocument(
        text=joined.text,
        blocks=promote_headings(joined.text, joined.blocks),
        media_type=media_type,
        page_count=builder.page_count,
        table_count=sum(block.kind is BlockKind.TABLE for block in joined.blocks),
        warnings=warnings,
    )


@contextmanager
def open_pictures(path: Path, recogniser: Recogniser) -> Iterator[PictureReader]:
    """What stands on the pictures inside an Office document or book, each read once."""
    seen: set[str] = set()

    def read(address: str) -> list[RecognisedLine]:
        name = PurePosixPath(address.removeprefix("embedded:")).name
        member = members.get(name)
        if member is None or name in seen or member.file_size > _MAX_PICTURE_BYTES:
            return []
        seen.add(name)
        try:
            with Image.open(io.BytesIO(archive.read(member)), formats=_FORMATS) as image:
                if image.width * image.height > MAX_PIXELS or not _says_something(image):
                    return []
                return recogniser.picture(_upright(image))
        except (zipfile.BadZipFile, zlib.error, EOFError, SyntaxError, ValueError, OSError):
            return []

    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError):
        yield lambda _: []
        return
    with archive:
        members = {PurePosixPath(info.filename).name: info for info in archive.infolist()}
        yield read


def _says_something(image: Image.Image) -> bool:
    return image.width >= _MIN_PICTURE[0] and image.height >= _MIN_PICTURE[1]


def _render(page: pypdfium2.PdfPage) -> Image.Image:
    scale = min(_DOTS_PER_POINT, LONGEST_SIDE / max(*page.get_size(), 1.0))
    bitmap = page.render(scale=scale)
    try:
        image: Image.Image = bitmap.to_pil().convert("RGB")
        return image
    finally:
        bitmap.close()


def _upright(image: Image.Image) -> Image.Image:
    """As seen, on white paper, no larger than the recogniser looks at."""
    turned = ImageOps.exif_transpose(image)
    turned.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    if turned.mode in {"RGBA", "LA", "PA"} or "transparency" in turned.info:
        turned = turned.convert("RGBA")
        paper = Image.new("RGBA", turned.size, "white")
        return Image.alpha_composite(paper, turned).convert("RGB")
    return turned.convert("RGB")


def _on_paper(image: Image.Image) -> Image.Image:
    """With white around a small picture, so that the cost never exceeds that of a page."""
    if max(image.size) <= _SMALL_SIDE:
        image = image.resize((2 * image.width, 2 * image.height))
    size = (max(image.width, _MIN_SIDE), max(image.height, _MIN_SIDE))
    if size == image.size:
        return image
    paper = Image.new("RGB", size, "white")
    paper.paste(image)
    return paper


def _is_blank(image: Image.Image) -> bool:
    darkest, lightest = image.convert("L").getextrema()
    return bool(lightest - darkest < _MIN_CONTRAST)  # type: ignore[operator]
