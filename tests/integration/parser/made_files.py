"""Small files of many formats, made here so that no test depends on files from elsewhere."""

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence

from PIL import Image, ImageDraw, ImageFont

_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx(body: str) -> bytes:
    """A Word file with this XML as its body."""
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="H{n}"><w:name w:val="heading {n}"/></w:style>'
        for n in (1, 2)
    )
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{_TYPES}">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package'
            '.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{main}.document.main+xml"/>'
            f'<Override PartName="/word/styles.xml" ContentType="{main}.styles+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{_RELS}"><Relationship Id="r1" '
            f'Type="{office}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{_RELS}"><Relationship '
            f'Id="r1" Type="{office}/styles" Target="styles.xml"/></Relationships>',
            "word/styles.xml": f'<w:styles xmlns:w="{_WORD}">{styles}</w:styles>',
            "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body>'
            "</w:document>",
        }
    )


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def table(*rows: tuple[str, ...]) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def strict_xlsx() -> bytes:
    """A workbook of the strict kind with one cell."""
    sheet = "http://purl.oclc.org/ooxml/spreadsheetml/main"
    office = "http://purl.oclc.org/ooxml/officeDocument/relationships"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{_TYPES}">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package'
            '.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
            f'<Override PartName="/xl/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{_RELS}"><Relationship Id="r1" '
            f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_RELS}"><Relationship '
            f'Id="r1" Type="{office}/worksheet" Target="sheet1.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook xmlns="{sheet}" xmlns:r="{office}" '
            'conformance="strict"><sheets><sheet name="考勤" sheetId="1" r:id="r1"/></sheets>'
            "</workbook>",
            "xl/sheet1.xml": f'<worksheet xmlns="{sheet}"><sheetData><row r="1">'
            '<c r="A1" t="inlineStr"><is><t>陈望舒</t></is></c><c r="B1"><v>21</v></c></row>'
            "</sheetData></worksheet>",
        }
    )


def archive(members: Mapping[str, str | bytes]) -> bytes:
    """A ZIP file of these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def pdf(*pages: str) -> bytes:
    """A PDF file with one line of ASCII text a page; '' makes a page without text."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else ""
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * n} 0 R >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    return pdf_of(*objects)


def pdf_of(*objects: str) -> bytes:
    """A PDF file of these objects, numbered from 1; the first is its catalog."""
    out = "%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    xref = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
    out += "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    out += f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF\n"
    return out.encode()


def picture(*pages: str) -> bytes:
    """Pictures of a line of text each, as a TIFF file of several or a PNG file of one."""
    frames = [_drawn(text) for text in pages or ("",)]
    buffer = io.BytesIO()
    kind = "PNG" if len(frames) == 1 else "TIFF"
    frames[0].save(buffer, kind, save_all=kind == "TIFF", append_images=frames[1:])
    return buffer.getvalue()


def scan_pdf(*pages: str) -> bytes:
    """A PDF file of pictures, a line of text each; '' is blank paper."""
    frames = [_drawn(text) for text in pages]
    buffer = io.BytesIO()
    frames[0].save(buffer, "PDF", save_all=True, append_images=frames[1:], resolution=150)
    return buffer.getvalue()


def _drawn(text: str) -> Image.Image:
    image = Image.new("RGB", (640, 160), "white")
    ImageDraw.Draw(image).text((40, 50), text, fill="black", font=ImageFont.load_default(48))
    return image


def large_pdf(pages: int, image_bytes: int = 0) -> Iterator[bytes]:
    """A PDF file piece by piece: 45 lines a page and a grey picture of so many bytes."""
    offsets: dict[int, int] = {}
    written = 0

    def piece(data: bytes) -> bytes:
        nonlocal written
        written += len(data)
        return data

    def numbered(number: int, body: bytes) -> bytes:
        offsets[number] = written
        return piece(b"%d 0 obj\n%s\nendobj\n" % (number, body))

    side = int(image_bytes**0.5)
    picture_bytes = bytes(side * side)
    kids = b" ".join(b"%d 0 R" % (4 + 3 * n) for n in range(pages))
    yield piece(b"%PDF-1.4\n")
    yield numbered(1, b"<< /Type /Catalog /Pages 2 0 R >>")
    yield numbered(2, b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, pages))
    yield numbered(3, b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for n in range(pages):
        first = 4 + 3 * n
        lines = b" ".join(b"(Line %d of page %d.) Tj T*" % (line, n + 1) for line in range(45))
        content = b"BT /F1 10 Tf 14 TL 72 750 Td %s ET" % lines
        content += b" q 100 0 0 100 300 20 cm /I Do Q" if side else b""
        yield numbered(
            first,
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources "
            b"<< /Font << /F1 3 0 R >> /XObject << /I %d 0 R >> >> >>" % (first + 1, first + 2),
        )
        yield numbered(first + 1, _stream(b"", content))
        yield numbered(
            first + 2,
            _stream(
                b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray "
                b"/BitsPerComponent 8" % (side, side),
                picture_bytes,
            ),
        )
    at, size = written, len(offsets) + 1
    table = b"".join(b"%010d 00000 n \n" % offsets[number] for number in range(1, size))
    yield b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    yield b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, at)


def _stream(entries: bytes, data: bytes) -> bytes:
    return b"<< %s /Length %d >>\nstream\n%s\nendstream" % (entries, len(data), data)


def ruled_pdf(rows: Sequence[Sequence[str]], *, heading: str, body: str) -> bytes:
    """A PDF page with a large heading, a paragraph and a table whose cells have lines around."""
    width, height, top = 150, 20, 600
    across, down = len(rows[0]), len(rows)
    lines = [
        *(
            f"72 {top - height * n} m {72 + width * across} {top - height * n} l S"
            for n in range(down + 1)
        ),
        *(
            f"{72 + width * n} {top} m {72 + width * n} {top - height * down} l S"
            for n in range(across + 1)
        ),
    ]
    cells = [
        f"BT /F1 10 Tf {76 + width * x} {top - height * (y + 1) + 6} Td ({cell}) Tj ET"
        for y, row in enumerate(rows)
        for x, cell in enumerate(row)
    ]
    content = " ".join(
        [
            f"BT /F1 18 Tf 72 700 Td ({heading}) Tj ET",
            f"BT /F1 10 Tf 72 660 Td ({body}) Tj ET",
            *lines,
            *cells,
        ]
    )
    return pdf_of(
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
        "/Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>",
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
    )
