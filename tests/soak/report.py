"""A run as people read it: one table of levels, and what is wrong."""

from collections import defaultdict

from tests.soak.levels import Level
from tests.soak.run import Outcome

_HEAD = ("", "resource", "start", "¼", "½", "¾", "end", "most", "rest", "")


def table(outcome: Outcome) -> str:
    """Medians of the load's quarters and what is left after it: each process, each table, all."""
    rows = [_HEAD, *map(_row, outcome.levels), *_totals(outcome.levels)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        lines.append(
            "  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(cells))
        )
    lines.append(
        f"load {outcome.load_s:.0f} s of {outcome.seconds:.0f} s; "
        f"the broker was recycled {outcome.recycled} times"
    )
    return "\n".join(lines)


def faults(outcome: Outcome) -> str:
    """Empty when nothing is wrong."""
    lines = [f"grows: {' '.join(_row(each))}" for each in outcome.growing]
    lines += [f"{count} rows of {table} are left" for table, count in outcome.left_rows.items()]
    if outcome.recycled < outcome.size.least_recycled:
        lines.append("the broker was not recycled")
    return "\n".join([*lines, *map(str, outcome.findings.faults)])


def _row(each: Level) -> tuple[str, ...]:
    numbers = (each.start, *each.quarters, each.most, each.rest)
    verdict = "GROWS" if each.grows else ""
    return each.owner, each.resource, *(f"{number:.0f}" for number in numbers), verdict


def _totals(levels: list[Level]) -> list[tuple[str, ...]]:
    by_resource: dict[str, list[Level]] = defaultdict(list)
    for each in levels:
        by_resource[each.resource].append(each)
    return [
        (
            "all",
            resource,
            f"{sum(each.start for each in found):.0f}",
            *(
                f"{sum(parts):.0f}"
                for parts in zip(*(each.quarters for each in found), strict=True)
            ),
            "",
            f"{sum(each.rest for each in found):.0f}",
            "",
        )
        for resource, found in by_resource.items()
    ]
