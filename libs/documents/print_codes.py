"""Headers and footers of sheets as a reader sees them: without the codes for the printer."""

import re
from typing import Final

# Font, colour, size, section, style, and what the printer fills in: page, date, file, sheet
# (ECMA-376 part 1, 18.3.1.46). A literal ampersand is two.
_CODE: Final = re.compile(
    r'&(?:"[^"]*"|K(?:[0-9A-Fa-f]{6}|\d{2}[+-]\d{3})|\d{1,3}|[ABCDEFGHILNOPRSTUXYZ]|(?P<literal>&))'
)


def without_print_codes(text: str) -> str:
    """The words of a header or footer, which begins with a code; any other text as it is."""
    if not _CODE.match(text.lstrip()):
        return text
    return _CODE.sub(lambda code: code["literal"] or "", text)
