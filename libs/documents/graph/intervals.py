"""Intervals of numbers and days: what a value or a condition stands for, and how two compare."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

DATE: Final = "date"  # bounds are days, `date.toordinal`
PERCENT: Final = "%"
PLAIN: Final = ""  # a number that names no unit
CURRENCIES: Final = frozenset({"CNY", "USD", "EUR", "GBP", "HKD", "JPY"})


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers of one unit; a missing bound is infinite, an open one does not belong to it.

    `unit`: a currency (ISO 4217), `%`, `date`, `hour`, `day`, `workday`, `month`, `person`, or ''.
    """

    unit: str
    low: Decimal | None = None
    high: Decimal | None = None
    low_open: bool = False
    high_open: bool = False

    @property
    def is_empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))


def comparable(one: Interval, other: Interval) -> bool:
    """Whether both are of one unit; a number without one may be money, and nothing else."""
    if one.unit == other.unit:
        return True
    money = CURRENCIES | {PLAIN}
    return PLAIN in (one.unit, other.unit) and {one.unit, other.unit} <= money


def meet(one: Interval, other: Interval) -> Interval:
    """What both hold; the unit is the more telling one."""
    lows = [(each.low, each.low_open) for each in (one, other) if each.low is not None]
    highs = [(each.high, each.high_open) for each in (one, other) if each.high is not None]
    low, low_open = max(lows, default=(None, False))
    high, high_open = min(highs, key=lambda end: (end[0], not end[1]), default=(None, False))
    return Interval(one.unit or other.unit, low, high, low_open, high_open)
