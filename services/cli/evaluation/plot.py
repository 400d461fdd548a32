"""Bars with their intervals, and curves, as SVG pictures that need nothing to be shown."""

from collections.abc import Mapping, Sequence
from html import escape

from services.cli.evaluation.metrics import Estimate

_COLOURS = ("#1f5fbf", "#7aa6e0", "#c9a227")
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
_BAR, _GAP, _HEIGHT, _LEFT, _TOP, _BELOW = 26, 22, 220, 44, 40, 40


def bars(title: str, groups: Mapping[str, Mapping[str, Estimate]]) -> str:
    """One group of bars per key, one bar per series; the axis is 0 to 1."""
    series = list(dict.fromkeys(name for group in groups.values() for name in group))
    width_of_group = _BAR * len(series) + _GAP
    width = max(_LEFT + width_of_group * len(groups) + _GAP, 360)
    parts = _frame(title, width, width, series)
    for number, (name, group) in enumerate(groups.items()):
        x = _LEFT + _GAP / 2 + number * width_of_group
        middle = x + _BAR * len(series) / 2
        parts.append(_text(middle, _TOP + _HEIGHT + 16, name))
        for place, label in enumerate(series):
            if label in group:
                parts += _bar(x + place * _BAR, group[label], _COLOURS[place % len(_COLOURS)])
    return "\n".join([*parts, "</svg>\n"])


def curves(title: str, below: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """A line per series through its (x, y) points; both axes are 0 to 1."""
    side = _HEIGHT
    parts = _frame(title, _LEFT + side + _GAP, _LEFT + side, list(lines))
    parts.append(_text(_LEFT + side / 2, _TOP + _HEIGHT + 30, below))
    for tick in _TICKS:
        parts.append(_text(_LEFT + side * tick, _TOP + _HEIGHT + 16, f"{tick:.2f}"))
    for place, points in enumerate(lines.values()):
        path = " ".join(f"{round(_LEFT + side * x, 1)},{_y(y)}" for x, y in sorted(points))
        colour = _COLOURS[place % len(_COLOURS)]
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return "\n".join([*parts, "</svg>\n"])


def _frame(title: str, width: int, axis: int, series: Sequence[str]) -> list[str]:
    """The picture's beginning; the axis' lines end at `axis`."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{_HEIGHT + _TOP + _BELOW}" font-family="sans-serif" font-size="11">',
        f'<text x="{_LEFT}" y="14" font-size="13">{escape(title)}</text>',
        *_axis(axis),
        *_legend(series),
    ]


def _axis(width: int) -> list[str]:
    lines = []
    for tick in _TICKS:
        y = _y(tick)
        lines.append(f'<line x1="{_LEFT}" y1="{y}" x2="{width}" y2="{y}" stroke="#ddd"/>')
        lines.append(_text(_LEFT - 16, y + 4, f"{tick:.2f}"))
    return lines


def _legend(series: Sequence[str]) -> list[str]:
    parts = []
    for place, label in enumerate(series):
        x = _LEFT + place * 90
        colour = _COLOURS[place % len(_COLOURS)]
        parts.append(f'<rect x="{x}" y="22" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 14}" y="31">{escape(label)}</text>')
    return parts


def _bar(x: float, value: Estimate, colour: str) -> list[str]:
    y, middle = _y(value.mean), x + (_BAR - 4) / 2
    height = _y(0.0) - y
    return [
        f'<rect x="{x}" y="{y}" width="{_BAR - 4}" height="{height}" fill="{colour}"/>',
        f'<line x1="{middle}" y1="{_y(value.low)}" x2="{middle}" y2="{_y(value.high)}" '
        'stroke="#222"/>',
        _text(middle, y - 4, f"{value.mean:.2f}"),
    ]


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="middle">{escape(text)}</text>'


def _y(value: float) -> float:
    return round(_TOP + _HEIGHT * (1.0 - value), 1)
