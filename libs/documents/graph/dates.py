"""Dates, months and years in Chinese and English text, as the days they mean."""

import re
from collections.abc import Iterator
from datetime import MAXYEAR, date, timedelta
from decimal import Decimal
from typing import Final

from libs.documents.graph.intervals import DATE, Interval

_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_YEAR: Final = r"(?:19|20)\d\d"
_DATE: Final = re.compile(
    rf"(?<![\d.])(?P<zy>{_YEAR})[ ]?年(?:[ ]?(?P<zm>\d{{1,2}})[ ]?月(?:[ ]?(?P<zd>\d{{1,2}})[ "
    rf"]?[日号])?)?"
    rf"|"
    rf"(?<![\w./-])(?P<iy>{_YEAR})(?P<sep>[-/.])(?P<im>\d{{1,2}})(?P=sep)(?P<id>\d{{1,2}})(?![\w/-])"
    rf"|\b(?P<ed>\d{{1,2}})(?:st|nd|rd|th)?[ ](?P<em>{_MONTH})\.?,?[ ](?P<ey>{_YEAR})\b"
    rf"|\b(?P<um>{_MONTH})\.?[ ](?:(?P<ud>\d{{1,2}})(?:st|nd|rd|th)?,?[ ])?(?P<uy>{_YEAR})\b"
    rf"|\b(?:in|since|from|until|by|before|after|during|year)[ ](?P<by>{_YEAR})\b(?![ ]?[-/.,]?\d)",
    re.IGNORECASE,
)


def dates(text: str) -> Iterator[tuple[Interval, int, int]]:
    """The days of every date, month and year in `text`, with its span, in order."""
    for match in _DATE.finditer(text):
        year = match["zy"] or match["iy"] or match["ey"] or match["uy"] or match["by"]
        month = match["zm"] or match["im"] or match["em"] or match["um"]
        day = match["zd"] or match["id"] or match["ed"] or match["ud"]
        interval = _days(int(year), _month(month), int(day) if day else None)
        if interval is not None:
            start = match.start("by") if match["by"] else match.start()
            yield interval, start, match.end()


def _month(named: str | None) -> int | None:
    if named is None or named.isdecimal():
        return int(named) if named else None
    return _MONTHS.index(named[:3].lower()) + 1


def _days(year: int, month: int | None, day: int | None) -> Interval | None:
    if not year < MAXYEAR:
        return None
    try:
        first = date(year, month or 1, day or 1)
    except ValueError:
        return None
    if day:
        last = first
    elif month:
        last = date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
    else:
        last = date(year, 12, 31)
    return Interval(DATE, Decimal(first.toordinal()), Decimal(last.toordinal()))
