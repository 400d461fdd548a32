"""Bytes without a declared encoding become the text they were."""

import codecs

import pytest

from libs.documents.encodings import decode_text
from libs.kernel import PermanentError

CHINESE = "公司坚持公开招聘、同工同酬的原则。任何部门不得以性别、民族、籍贯为由拒绝录用合格人员。"
TRADITIONAL = (
    "公司堅持公開招聘、同工同酬的原則。任何部門不得以性別、民族、籍貫為由拒絕錄用合格人員。"
)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("", "utf-8"),
        ("plain ascii", "ascii"),
        (CHINESE + "𠮷😀", "utf-8"),
        (CHINESE, "utf-8-sig"),
        (CHINESE, "gbk"),
        (CHINESE + "𠮷", "gb18030"),
        ("年假五天。", "gbk"),
        ("姓名,部门\n陈望舒,研发中心\n", "gb2312"),
        (TRADITIONAL, "big5"),
        ("員工每年有五天年假。", "big5"),
        (CHINESE, "utf-16"),
        ("English text without a mark", "utf-16-le"),
        ("English text without a mark", "utf-16-be"),
        ("English text without a mark", "utf-32-le"),
        (CHINESE, "utf-32"),
        ("Für Köln wäre es schön, über Bücher zu sprechen. Größe und Maß.", "cp1252"),
        ("名前,年齢,住所\n佐藤太郎,30,東京\n", "cp932"),
        ("これは日本語のテキストです。漢字とかなを含みます。", "shift_jis"),
        ("Это русский текст, который был записан в старой кодировке.", "cp1251"),
        ("Это русский текст, который был записан в старой кодировке.", "cp866"),
    ],
)
def test_text_comes_back(text: str, encoding: str) -> None:
    assert decode_text(text.encode(encoding)) == text


def test_big_endian_marks() -> None:
    for bom, name in ((codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF32_BE, "utf-32-be")):
        assert decode_text(bom + CHINESE.encode(name)) == CHINESE


def test_bytes_that_are_no_text_are_refused() -> None:
    noise = bytes((n * 7919 + n // 3 * 31) % 256 for n in range(5000))
    with pytest.raises(PermanentError, match="undecodable-text"):
        decode_text(codecs.BOM_UTF8 + noise)
    with pytest.raises(PermanentError, match="undecodable-text"):
        decode_text(noise)
    with pytest.raises(PermanentError, match="undecodable-text"):
        decode_text(b"abc\0" * 1000)
