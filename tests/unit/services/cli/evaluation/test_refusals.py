"""Thresholds are chosen on one half of the questions and judged on the other."""

import numpy as np
import pytest

from services.cli.evaluation import plot
from services.cli.evaluation.refusals import (
    ANSWERABLE,
    FOREIGN,
    MISSING,
    Weighed,
    as_shipped,
    curve,
    lines,
)


def weighed(kind: str, low: float, high: float, count: int = 4_000) -> list[Weighed]:
    return [
        Weighed(f"{kind}{i}", kind, float(certainty), certainty < 1.0)
        for i, certainty in enumerate(np.linspace(low, high, count))
    ]


QUESTIONS = [*weighed(ANSWERABLE, 1.0, 2.0), *weighed(FOREIGN, 0.0, 1.0), *weighed(MISSING, 1, 2)]


def test_halves_are_about_equal_and_the_same_every_time() -> None:
    tuning = [one.id for one in QUESTIONS if one.tunes]
    assert 0.4 < len(tuning) / len(QUESTIONS) < 0.6
    assert tuning == [one.id for one in QUESTIONS if one.tunes]


def test_the_curve_declines_what_is_below_and_loses_about_what_it_may() -> None:
    points = {point.loss: point for point in curve(QUESTIONS)}
    for loss, point in points.items():
        assert point.declined[ANSWERABLE].mean == pytest.approx(loss, abs=0.04)
        assert point.declined[MISSING].mean == pytest.approx(loss, abs=0.08)
        assert point.declined[FOREIGN].mean > 0.99
    assert points[0.2].threshold == pytest.approx(1.2, abs=0.03)


def test_the_half_that_tunes_is_not_judged() -> None:
    judged_too = [
        Weighed(
            one.id, one.kind, 0.0 if one.tunes and one.kind == FOREIGN else one.certainty, False
        )
        for one in QUESTIONS
    ]
    assert curve(judged_too)[0].declined[FOREIGN] == curve(QUESTIONS)[0].declined[FOREIGN]


def test_as_shipped_counts_every_question() -> None:
    shares = as_shipped(QUESTIONS)
    assert shares[ANSWERABLE].mean == 0.0
    assert shares[FOREIGN].mean == pytest.approx(0.99975)


def test_without_answerable_questions_there_is_no_curve() -> None:
    with pytest.raises(ValueError, match="answerable"):
        curve(weighed(FOREIGN, 0, 1))


def test_the_picture_has_a_line_per_kind() -> None:
    picture = plot.curves("declined", "lost", lines(curve(QUESTIONS)))
    assert picture.count("<polyline") == 2
