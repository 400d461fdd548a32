"""Whether a measured resource levels off: pure, so that the verdict itself is tested."""

from dataclasses import dataclass
from statistics import median

Series = list[tuple[float, float]]  # seconds since the load began, value; ascending
QUARTERS = 4


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What the last quarter may lie above the second one: a share of it, and an amount.

    The first quarter warms up: connections, caches and worker processes are made in it.
    """

    share: float
    amount: float

    def allows(self, before: float, after: float) -> bool:
        return after <= before * (1 + self.share) + self.amount


@dataclass(frozen=True, slots=True)
class Ceiling:
    """For what grows until it is emptied: no value may lie above."""

    most: float


@dataclass(frozen=True, slots=True)
class Level:
    """One resource of one owner over a run."""

    owner: str
    resource: str
    quarters: tuple[float, ...]  # the medians
    start: float
    most: float
    rest: float  # when the load was over
    grows: bool


def level(
    owner: str, resource: str, series: Series, rule: Tolerance | Ceiling, rest: float
) -> Level:
    """The verdict on a series of at least one sample in each quarter, and one at rest after it.

    What a busier quarter holds for its own work is no growth: it is gone when the work is.
    """
    quarters = tuple(median(part) for part in _parts(series))
    values = [value for _, value in series]
    if isinstance(rule, Ceiling):
        grows = max(values) > rule.most
    else:
        grows = not rule.allows(quarters[1], min(quarters[-1], rest))
    return Level(owner, resource, quarters, values[0], max(values), rest, grows)


def _parts(series: Series) -> list[list[float]]:
    """The values in each quarter of the time; an empty one takes over the value before it."""
    length_s = series[-1][0] / QUARTERS or 1.0
    parts: list[list[float]] = [[] for _ in range(QUARTERS)]
    for at_s, value in series:
        parts[min(int(at_s / length_s), QUARTERS - 1)].append(value)
    last = series[0][1]
    for part in parts:
        if not part:
            part.append(last)
        last = part[-1]
    return parts
