"""Text as rules read it: ordinary widths, and every character where it was."""

import re
from typing import Final

_PLAIN_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
# Those stay: they part clauses in Chinese texts.
_TO_ASCII: Final[dict[int, int | str]] = {
    **{code: to for code, to in _PLAIN_WIDTH.items() if chr(code) not in "，；：！？"},
    **dict.fromkeys((0xA0, 0x2009, 0x202F, 0x3000), " "),
    0xFFE5: "¥",
}
_WIDE_THOUSANDS = re.compile(r"(?<=[０-９])，(?=[０-９]{3}(?![０-９]))")


def plain_width(text: str) -> str:
    """`text` with ordinary digits, letters and spaces: same length, so spans stay right."""
    return _WIDE_THOUSANDS.sub(",", text).translate(_TO_ASCII)
