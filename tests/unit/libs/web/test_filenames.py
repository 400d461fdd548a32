"""Names of uploaded files: nothing in them can leave a folder, break a header or hide a suffix."""

import unicodedata
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.web import attachment, clean_name
from libs.web.filenames import DEFAULT_NAME, MAX_NAME_CHARS


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\报告.docx", "报告.docx"),
        ("a\x00b\r\nc\x1b.txt", "abc.txt"),
        ("exe\u202efdp.txt", "exefdp.txt"),
        ("𠮷野家 🍜.pdf", "𠮷野家 🍜.pdf"),
        ("👨\u200d👩\u200d👧.png", "👨\u200d👩\u200d👧.png"),
        ("", DEFAULT_NAME),
        (None, DEFAULT_NAME),
        ("..", DEFAULT_NAME),
        ("folder/", DEFAULT_NAME),
        ("\ud800", DEFAULT_NAME),
        ("x" * 300 + ".pdf", "x" * 251 + ".pdf"),
    ],
)
def test_cases(raw: str | None, name: str) -> None:
    assert clean_name(raw) == name


@given(st.text(st.characters(), max_size=400))
def test_any_name_becomes_a_safe_one(raw: str) -> None:
    name = clean_name(raw)
    assert 1 <= len(name) <= MAX_NAME_CHARS
    assert not set(name) & set("/\\")
    assert name not in {".", ".."}
    assert not any(unicodedata.category(char) in {"Cc", "Cs"} for char in name)
    assert clean_name(name) == name
    name.encode()


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]), min_size=1))
def test_a_name_comes_back_whole_from_its_header(raw: str) -> None:
    name = clean_name(raw)
    header = attachment(name)
    header.encode("ascii")
    assert unquote(header.split("filename*=UTF-8''")[1]) == name
    assert header.count('"') == 2
    assert "\n" not in header
