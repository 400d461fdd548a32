"""Archives are read file by file within their limits, and say what they left out."""

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from libs.documents.model import BlockKind, ParsedDocument
from libs.kernel import PermanentError
from services.ingest.parser.domain import archives
from services.ingest.parser.domain.reading import read_document

Members = dict[str, bytes]


def read(tmp_path: Path, data: bytes, name: str) -> ParsedDocument:
    def no_tika(path: Path, max_chars: int) -> ParsedDocument:
        raise AssertionError(path)

    path = tmp_path / "source"
    path.write_bytes(data)
    return read_document(path, name, "", max_chars=100_000, tika=no_tika)


def refused(tmp_path: Path, data: bytes, name: str) -> str:
    with pytest.raises(PermanentError) as caught:
        read(tmp_path, data, name)
    return caught.value.reason


def headings(document: ParsedDocument) -> list[tuple[int | None, str]]:
    return [
        (block.level, document.text[block.start : block.end])
        for block in document.blocks
        if block.kind is BlockKind.HEADING
    ]


def zipped(members: Members) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(members: Members, mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


MEMBERS = {
    "手册/a.md": "# 考勤\n\n每天打卡。".encode(),
    "b.txt": "报销时限为三十日。".encode("gbk"),
}


@pytest.mark.parametrize(
    ("pack", "media_type"),
    [
        (zipped, "application/zip"),
        (tarred, "application/x-tar"),
        (lambda m: tarred(m, "w:gz"), "application/gzip"),
        (lambda m: tarred(m, "w:bz2"), "application/x-bzip2"),
    ],
    ids=["zip", "tar", "tar.gz", "tar.bz2"],
)
def test_files_come_in_order_below_their_names(
    tmp_path: Path, pack: Callable[[Members], bytes], media_type: str
) -> None:
    document = read(tmp_path, pack(MEMBERS), "a")
    assert headings(document) == [(1, "手册/a.md"), (2, "# 考勤"), (1, "b.txt")]
    assert document.text.endswith("报销时限为三十日。")
    assert document.media_type == media_type
    assert document.warnings == []


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_one_compressed_file_is_named_without_the_last_ending(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    assert headings(read(tmp_path, pack(b"Some text."), "notes.txt.gz")) == [(1, "notes.txt")]


def test_archives_inside_are_read_and_deeper_ones_are_named(tmp_path: Path) -> None:
    data = zipped({"deepest.txt": b"never read"})
    for level in range(archives.MAX_DEPTH, 0, -1):
        data = zipped({f"{level}.zip": data, f"{level}.txt": f"level {level}".encode()})
    document = read(tmp_path, data, "a.zip")
    assert [f"level {n}" in document.text for n in range(1, archives.MAX_DEPTH + 1)] == [
        True
    ] * archives.MAX_DEPTH
    assert "never read" not in document.text
    assert any("too-deep" in warning for warning in document.warnings)


def test_links_and_names_that_lead_outside_are_left_out(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    buffer = io.BytesIO(zipped({"../up.txt": b"x", "/root.txt": b"x", "c:\\d.txt": b"x"}))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(link, "/etc/passwd")
        archive.writestr("good.txt", "kept")
    document = read(tmp_path, buffer.getvalue(), "a.zip")
    assert headings(document) == [(1, "good.txt")]
    assert len(document.warnings) == 4
    assert all("unsafe-member" in warning for warning in document.warnings)


def test_links_and_devices_in_a_tar_are_left_out(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind in (("s", tarfile.SYMTYPE), ("h", tarfile.LNKTYPE), ("d", tarfile.CHRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    assert refused(tmp_path, buffer.getvalue(), "a.tar") == "unsafe-member"


def test_names_in_a_local_encoding_are_read(tmp_path: Path) -> None:
    name = "管理制度.txt"
    data = zipped({"x" * len(name.encode("gbk")): b"text"})
    data = data.replace(b"x" * len(name.encode("gbk")), name.encode("gbk"))
    assert headings(read(tmp_path, data, "a.zip")) == [(1, name)]


def test_too_many_files(tmp_path: Path) -> None:
    data = zipped({f"{n}.txt": b"text" for n in range(archives.MAX_MEMBERS + 1)})
    assert refused(tmp_path, data, "a.zip") == "too-many-files"


@pytest.mark.parametrize("wrap", [lambda data: data, lambda data: zipped({"inner.zip": data})])
def test_more_than_a_hundred_times_its_size(tmp_path: Path, wrap: Callable[[bytes], bytes]) -> None:
    bomb = zipped({"a.txt": b"good", "b.txt": b"0" * 30_000_000})
    assert refused(tmp_path, wrap(bomb), "a.zip") == "decompression-bomb"


def test_the_only_file_inside_gives_the_reason(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.txt": b"secret"}))
    for offset, magic in ((6, b"PK\x03\x04"), (8, b"PK\x01\x02")):  # says that it is encrypted
        data[data.index(magic) + offset] |= 1
    assert refused(tmp_path, bytes(data), "a.zip") == "encrypted"


@pytest.mark.parametrize("end", [1200, 1800], ids=["in a header", "in a file"])
def test_a_damaged_archive_keeps_what_could_be_read(tmp_path: Path, end: int) -> None:
    data = tarred({"a.txt": b"whole", "b.txt": b"x" * 5000})
    document = read(tmp_path, data[:end], "a.tar")
    assert "whole" in document.text
    assert document.warnings


def test_a_file_whose_name_is_damaged_is_named_as_corrupt(tmp_path: Path) -> None:
    data = zipped({"年.txt": b"lost", "b.txt": b"kept"})
    document = read(tmp_path, data.replace("年".encode(), b"\xe5\x28\xa1", 1), "a.zip")
    assert headings(document) == [(1, "b.txt")]
    assert document.warnings == ["年.txt: not read (corrupt)"]
