"""Numbers in Chinese characters."""

from typing import Final

DIGITS: Final = {char: n for n, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
TENS: Final = {"十": 10, "百": 100, "千": 1000}


def han_number(numeral: str) -> int | None:
    """两万 is 20 000, 三千五百 is 3 500; None: not a number."""
    total, section, digit = 0, 0, None
    for char in numeral:
        if char in DIGITS:
            if digit not in (None, 0):
                return None
            digit = DIGITS[char]
        elif char in TENS:
            section += (1 if digit is None else digit) * TENS[char]
            digit = None
        else:
            if digit is None and section == 0 and total == 0:
                return None
            total = (total + section + (digit or 0)) * (10**4 if char == "万" else 10**8)
            section, digit = 0, None
    return total + section + (digit or 0)
