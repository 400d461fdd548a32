"""Files of a few kilobytes that are made to hurt whoever reads them."""

import bz2
import gzip
import io
import stat
import zipfile

from tests.integration.parser.made_files import archive, docx, paragraph, pdf, pdf_of

_EXPANDS_TO = 300_000_000  # bytes


def zeros(size: int = _EXPANDS_TO) -> bytes:
    return b"0" * size


def with_member(document: bytes, name: str, content: bytes) -> bytes:
    """A ZIP-based document with one member replaced or added."""
    with zipfile.ZipFile(io.BytesIO(document)) as file:
        members = {info.filename: file.read(info) for info in file.infolist()}
    return archive({**members, name: content})


def word_bomb(text: bytes = b"") -> bytes:
    """A Word file whose one paragraph unpacks to hundreds of megabytes."""
    xml = (
        b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
        b"<w:body><w:p><w:r><w:t>" + (text or zeros()) + b"</w:t></w:r></w:p></w:body></w:document>"
    )
    return with_member(docx(paragraph("x")), "word/document.xml", xml)


def understated_bomb() -> bytes:
    """A Word file whose list says that its text is short."""
    data = bytearray(word_bomb())
    entry = data.index(b"PK\x01\x02")
    while data[entry + 46 : entry + 46 + 17] != b"word/document.xml":
        entry = data.index(b"PK\x01\x02", entry + 1)
    data[entry + 24 : entry + 28] = (1_000).to_bytes(4, "little")
    return bytes(data)


def sheet_bomb() -> bytes:
    sheet = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    rows = b'<row><c t="inlineStr"><is><t>a</t></is></c></row>' * 6_000_000
    return _office(
        "xl/workbook.xml",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
        {
            "xl/workbook.xml": f'<workbook xmlns="{sheet}" xmlns:r="{_OFFICE}"><sheets>'
            '<sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>'.encode(),
            "xl/_rels/workbook.xml.rels": _relation("worksheet", "sheet1.xml"),
            "xl/sheet1.xml": f'<worksheet xmlns="{sheet}"><sheetData>'.encode()
            + rows
            + b"</sheetData></worksheet>",
        },
    )


def slide_bomb() -> bytes:
    main = "http://schemas.openxmlformats.org/presentationml/2006/main"
    draw = "http://schemas.openxmlformats.org/drawingml/2006/main"
    return _office(
        "ppt/presentation.xml",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
        {
            "ppt/presentation.xml": f'<p:presentation xmlns:p="{main}" xmlns:r="{_OFFICE}">'
            '<p:sldIdLst><p:sldId id="256" r:id="r1"/></p:sldIdLst></p:presentation>'.encode(),
            "ppt/_rels/presentation.xml.rels": _relation("slide", "slides/slide1.xml"),
            "ppt/slides/slide1.xml": f'<p:sld xmlns:p="{main}" xmlns:a="{draw}"><p:cSld><p:spTree>'
            "<p:sp><p:txBody><a:p><a:r><a:t>".encode()
            + zeros()
            + b"</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>",
        },
    )


def open_document_bomb() -> bytes:
    office = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
    text = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
    return archive(
        {
            "mimetype": b"application/vnd.oasis.opendocument.text",
            "content.xml": f'<office:document-content xmlns:office="{office}" xmlns:text="{text}">'
            "<office:body><office:text><text:p>".encode()
            + zeros()
            + b"</text:p></office:text></office:body></office:document-content>",
        }
    )


def book_bomb() -> bytes:
    return archive(
        {
            "mimetype": b"application/epub+zip",
            "META-INF/container.xml": b'<container version="1.0" xmlns="urn:oasis:names:tc:'
            b'opendocument:xmlns:container"><rootfiles><rootfile full-path="c.opf" '
            b'media-type="application/oebps-package+xml"/></rootfiles></container>',
            "c.opf": b'<package xmlns="http://www.idpf.org/2007/opf" version="2.0"><manifest>'
            b'<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
            b'<spine><itemref idref="a"/></spine></package>',
            "a.xhtml": b'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>'
            + zeros()
            + b"</p></body></html>",
        }
    )


def nested_zip(depth: int = 30) -> bytes:
    """A ZIP in a ZIP in a ZIP …, inside a Word file."""
    inner = archive({"a.txt": b"x"})
    for _ in range(depth):
        inner = archive({"inner.zip": inner})
    document = docx(paragraph("text"))
    with zipfile.ZipFile(io.BytesIO(document)) as file:
        kinds = file.read("[Content_Types].xml")
    kind = b'<Default Extension="zip" ContentType="application/zip"/></Types>'
    listed = with_member(document, "[Content_Types].xml", kinds.replace(b"</Types>", kind))
    return with_member(listed, "word/embeddings/inner.zip", inner)


def gzip_bomb() -> bytes:
    return gzip.compress(gzip.compress(zeros()))


def bzip2_bomb() -> bytes:
    return bz2.compress(zeros(50_000_000))


def with_entities() -> bytes:
    """XML whose entities multiply: a billion laughs."""
    entities = "".join(
        f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' if n else '<!ENTITY l0 "lol">' for n in range(10)
    )
    return f'<?xml version="1.0"?><!DOCTYPE l [{entities}]><l>&l9;</l>'.encode()


def with_a_file_entity(path: str) -> bytes:
    """XML that asks for a file of the machine that reads it."""
    return (
        f'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY f SYSTEM "file://{path}">]>'
        "<l>before &f; after</l>".encode()
    )


def with_a_fetched_entity(url: str) -> bytes:
    """XML and SVG that ask for something from the network."""
    return (
        f'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY % p SYSTEM "{url}"> %p; '
        f'<!ENTITY f SYSTEM "{url}">]><svg xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink"><image xlink:href="{url}"/>'
        f"<text>before &f; after</text></svg>".encode()
    )


def page_that_fetches(url: str) -> bytes:
    """HTML with everything that a browser would go and get."""
    return (
        f'<html><head><base href="{url}"><link rel="stylesheet" href="{url}">'
        f'<meta http-equiv="refresh" content="0;url={url}"><script src="{url}"></script></head>'
        f'<body><p>harmless text</p><img src="{url}"><iframe src="{url}"></iframe></body></html>'
    ).encode()


def word_with_entity(url: str) -> bytes:
    """A Word file whose text asks for a file or an address."""
    xml = (
        f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY f SYSTEM "{url}">]>'
        '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
        "<w:body><w:p><w:r><w:t>harmless text &f;</w:t></w:r></w:p></w:body></w:document>"
    ).encode()
    return with_member(docx(paragraph("x")), "word/document.xml", xml)


def word_with_template(url: str) -> bytes:
    """A Word file whose template and picture are elsewhere."""
    relations = (
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{_OFFICE}/attachedTemplate" Target="{url}" TargetMode="External"/>'
        f'<Relationship Id="r2" Type="{_OFFICE}/image" Target="{url}" TargetMode="External"/>'
        "</Relationships>"
    ).encode()
    document = docx(paragraph("harmless text"))
    return with_member(document, "word/_rels/document.xml.rels", relations)


def endless_outline() -> bytes:
    """A PDF whose bookmarks lead back to the first one."""
    return pdf_of(
        "<< /Type /Catalog /Pages 2 0 R /Outlines 6 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 600] "
        "/Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>",
        "<< /Length 48 >>\nstream\nBT /F1 12 Tf 9 99 Td (harmless text of a page) Tj ET\nendstream",
        "<< /Type /Outlines /First 7 0 R /Last 8 0 R /Count 2 >>",
        "<< /Title (one) /Parent 6 0 R /Next 8 0 R /First 7 0 R /Last 7 0 R >>",
        "<< /Title (two) /Parent 6 0 R /Next 7 0 R /First 6 0 R /Last 6 0 R >>",
    )


def deep_html(depth: int = 200_000) -> bytes:
    return b"<html><body>" + b"<div>" * depth + b"deep" + b"</div>" * depth + b"</body></html>"


def deep_xml(depth: int = 200_000) -> bytes:
    return b"<?xml version='1.0'?>" + b"<a>" * depth + b"deep" + b"</a>" * depth


def deep_json(depth: int = 200_000) -> bytes:
    return b"[" * depth + b"]" * depth


def deep_markdown(depth: int = 100_000) -> bytes:
    return b"> " * depth + b"deep\n\n" + b"*" * depth + b"\n\n" + b"[" * depth


def page_tree(pages: int = 100_000) -> bytes:
    """A PDF whose page tree names one page many times."""
    kids = "4 0 R " * pages
    return pdf_of(
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] "
        "/Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>",
        "<< /Length 44 >>\nstream\nBT /F1 12 Tf 1 1 Td (a page of a long PDF) Tj ET\nendstream",
    )


def endless_page_tree() -> bytes:
    """A PDF whose page tree is its own child."""
    return pdf_of(
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 /Parent 2 0 R >>",
    )


def endless_form() -> bytes:
    """A PDF whose page draws a form that draws itself."""
    return pdf_of(
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] "
        "/Resources << /XObject << /F 4 0 R >> >> /Contents 5 0 R >>",
        "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] "
        "/Resources << /XObject << /F 4 0 R >> >> /Length 10 >>\nstream\n/F Do /F Do\nendstream",
        "<< /Length 5 >>\nstream\n/F Do\nendstream",
    )


def nested_arrays(depth: int = 100_000) -> bytes:
    """A PDF with an object of arrays in arrays."""
    return pdf_of(
        "<< /Type /Catalog /Pages 2 0 R /Deep 3 0 R >>",
        "<< /Type /Pages /Kids [] /Count 0 >>",
        "[" * depth + "]" * depth,
    )


def climbing(name: str) -> bytes:
    """A Word file that has a member with this name beside its own."""
    return with_member(docx(paragraph("harmless text")), name, b"climbed")


def linking(target: str) -> bytes:
    """A Word file with a symbolic link as a member."""
    buffer = io.BytesIO(docx(paragraph("harmless text")))
    link = zipfile.ZipInfo("word/media/link")
    link.create_system = 3
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(buffer, "a") as file:
        file.writestr(link, target)
    return buffer.getvalue()


def lying(name: str) -> bytes:
    """Something other than its name says."""
    del name
    return pdf("This is a PDF whatever its name says, with a line of text.")


_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def _relation(kind: str, target: str) -> bytes:
    return (
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{_OFFICE}/{kind}" Target="{target}"/></Relationships>'.encode()
    )


def _office(main: str, media_type: str, members: dict[str, bytes]) -> bytes:
    kinds = (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/{main}" ContentType="{media_type}"/>'
    )
    for name in members:
        if "slide1" in name or "sheet1" in name:
            kind = media_type.replace("presentation.main", "slide").replace(
                "sheet.main", "worksheet"
            )
            kinds += f'<Override PartName="/{name}" ContentType="{kind}"/>'
    return archive(
        {
            "[Content_Types].xml": f"{kinds}</Types>".encode(),
            "_rels/.rels": _relation("officeDocument", main),
            **members,
        }
    )
