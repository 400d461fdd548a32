"""Headers and footers of sheets without the printer's codes."""

import pytest

from libs.documents.builder import BlockBuilder
from libs.documents.print_codes import without_print_codes
from libs.documents.xhtml import read_xhtml


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ('&"Arial Unicode MS,Regular"&7&K00-023Extract from 2023', "Extract from 2023"),
        ("&6&Z&F", ""),
        ("&LPage &P of &N", "Page  of "),
        ("&CResearch && Development", "Research & Development"),
        ("&KFF0000Draft", "Draft"),
        ("R&D costs", "R&D costs"),  # no header: it begins with words
        ("& more", "& more"),
    ],
)
def test_codes_are_no_words(stored: str, read: str) -> None:
    assert without_print_codes(stored) == read


@pytest.mark.parametrize(
    ("sheets", "read"), [(True, "a\n\nDraft"), (False, "a\n\n&CDraft\n\n&6&Z&F")]
)
def test_only_sheets_have_them(sheets: bool, read: str) -> None:
    builder = BlockBuilder(1_000)
    after = "<p>&amp;CDraft</p><p>&amp;6&amp;Z&amp;F</p>"
    page = f"<html><body><table><tr><td>a</td></tr></table>{after}</body></html>".encode()
    read_xhtml([page], builder, sheets=sheets)
    assert builder.text == read
