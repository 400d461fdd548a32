"""Text from elsewhere commands no terminal and ends no line."""

import json

from hypothesis import given
from hypothesis import strategies as st

from libs.kernel import escape_hidden, printable

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def test_what_shows_stays_and_what_commands_goes() -> None:
    shown = "条例 🍜 e\u0301 👨\u200d👩 می\u200cخواهم"
    assert printable(shown) == shown
    assert printable("a\x1b[31m\x9b1m\x07\r\n\u2028\u202eb\x7f\x00") == "a[31m1mb"
    assert printable("a\n\tb", keep="\n") == "a\nb"


@given(TEXTS)
def test_json_says_the_same_on_one_line(text: str) -> None:
    line = escape_hidden(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(line) == {text: text}
    assert len(line.splitlines()) == 1
    assert printable(line) == line
