"""The soak's verdict: what it calls growth, and what not."""

import pytest

from tests.soak.levels import Ceiling, Level, Series, Tolerance, level
from tests.soak.run import SMALL, SMALL_HELD

FEW = Tolerance(0.05, 5)


def judged(series: Series, rule: Tolerance | Ceiling = FEW, rest: float | None = None) -> Level:
    return level("gateway", "fds", series, rule, series[-1][1] if rest is None else rest)


def every_second(values: list[float]) -> Series:
    return [(float(at_s), value) for at_s, value in enumerate(values)]


def test_one_more_with_every_document_is_growth() -> None:
    found = judged(every_second([40.0 + n for n in range(40)]))
    assert found.grows
    assert found.quarters == (44.5, 54.5, 64.5, 74.5)
    assert (found.start, found.most) == (40, 79)


def test_what_is_made_while_the_process_warms_up_is_none() -> None:
    assert not judged(every_second([10.0, 20.0, 30.0, 40.0, 50.0] + [50.0] * 15)).grows


def test_peaks_are_none_when_they_go_again() -> None:
    assert not judged(every_second([50.0, 50.0, 90.0, 50.0] * 10)).grows


def test_what_is_gone_when_the_work_is_was_never_growth() -> None:
    busier = every_second([50.0 + n for n in range(40)])
    assert not judged(busier, rest=50.0).grows
    assert judged(busier, rest=80.0).grows


@pytest.mark.parametrize(("end", "grows"), [(57.0, False), (58.0, True)])
def test_the_tolerance_is_a_share_and_an_amount(end: float, grows: bool) -> None:
    assert judged(every_second([50.0] * 30 + [end] * 10)).grows is grows


def test_what_is_emptied_may_rise_up_to_its_ceiling() -> None:
    sawtooth = every_second([10.0, 20.0, 30.0, 40.0] * 5)
    assert not judged(sawtooth, Ceiling(40)).grows
    assert judged(sawtooth, Ceiling(39)).grows


def test_quarters_are_of_time_so_a_process_that_was_away_counts_as_it_was_before() -> None:
    assert judged([(0.0, 10.0), (1.0, 12.0), (100.0, 50.0)]).quarters == (11.0, 12.0, 12.0, 50.0)


def test_a_small_run_tells_pools_that_fill_late_from_one_more_with_each_turn() -> None:
    filling = [25.0] * 5 + [31.0] * 10 + [33.0] * 10 + [40.0] * 10 + [41.0] * 15
    assert not judged(every_second(filling), SMALL_HELD).grows
    leaking = [40.0 + turn for turn in range(SMALL.turns)]
    assert judged(every_second(leaking), SMALL_HELD).grows
