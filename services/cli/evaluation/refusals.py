"""How well the gate parts questions that a library answers from those that it does not.

The gate's figure is asked for, not an answer, so a set of a thousand questions takes a minute. The
threshold is chosen on one half of the questions and judged on the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

import numpy as np

from services.cli.client import Client
from services.cli.evaluation.each import ask_each
from services.cli.evaluation.library import Library
from services.cli.evaluation.metrics import Estimate, estimate
from services.cli.evaluation.sets import Question
from services.cli.patience import Patience

FOREIGN = "foreign"
ANSWERABLE = "answerable"
MISSING = "missing fact"
KINDS = (ANSWERABLE, FOREIGN, MISSING)
TOP_K = 10  # as people search
LOSSES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)  # points of the curve


@dataclass(frozen=True, slots=True)
class Weighed:
    """One question and what the gate makes of it."""

    id: str
    kind: str  # FOREIGN, ANSWERABLE or MISSING
    certainty: float  # what is compared with a threshold; 0 when nothing was found
    declined: bool  # by the platform's own threshold

    @property
    def tunes(self) -> bool:
        """Whether it belongs to the half that thresholds are chosen on; the same every time."""
        return sha256(self.id.encode()).digest()[0] % 2 == 0


async def weigh(
    client: Client, library: Library, questions: Sequence[Question], asked: Callable[[], None]
) -> list[Weighed]:
    """Ask the gate about each question, within the set's own documents. Raises: CliError."""
    patience = Patience()

    async def one(question: Question) -> Weighed:
        body = {
            "query": question.text,
            "top_k": TOP_K,
            "domains": [library.domain],
            "explain": True,
        }
        found = await patience.through(partial(client.post, "/v1/search", body))
        verdict = found["explanation"]["gate"]
        certainty = verdict["coverage"] + verdict["nearest"]
        return Weighed(question.id, _kind(question), certainty, not verdict["passed"])

    return await ask_each(questions, one, asked)


def _kind(question: Question) -> str:
    if question.kind == FOREIGN:
        return FOREIGN
    return ANSWERABLE if question.answerable else MISSING


@dataclass(frozen=True, slots=True)
class Point:
    """A threshold, and on questions it was not chosen by: the shares it declines, by kind."""

    loss: float  # share of answerable questions it was chosen to decline, at most
    threshold: float
    declined: dict[str, Estimate]


def curve(weighed: Sequence[Weighed]) -> list[Point]:
    """A point per allowed loss. Raises: ValueError without answerable questions in each half."""
    tuning = [one.certainty for one in weighed if one.tunes and one.kind == ANSWERABLE]
    if not tuning:
        raise ValueError("too few answerable questions to choose a threshold by")
    thresholds = [float(np.quantile(tuning, loss, method="lower")) for loss in LOSSES]
    return [
        Point(loss, threshold, _shares(weighed, threshold))
        for loss, threshold in zip(LOSSES, thresholds, strict=True)
    ]


def _shares(weighed: Sequence[Weighed], threshold: float) -> dict[str, Estimate]:
    """Of the half that was kept back."""
    return {
        kind: estimate(values)
        for kind in KINDS
        if (
            values := [
                float(one.certainty < threshold)
                for one in weighed
                if one.kind == kind and not one.tunes
            ]
        )
    }


def as_shipped(weighed: Sequence[Weighed]) -> dict[str, Estimate]:
    """What the platform declines as it is, of all questions."""
    return {
        kind: estimate(values)
        for kind in KINDS
        if (values := [float(one.declined) for one in weighed if one.kind == kind])
    }


def lines(points: Sequence[Point]) -> dict[str, list[tuple[float, float]]]:
    """For a picture: by kind, (share of answerable questions lost, share declined)."""
    return {
        kind: [
            (point.declined[ANSWERABLE].mean, point.declined[kind].mean)
            for point in points
            if kind in point.declined and ANSWERABLE in point.declined
        ]
        for kind in (FOREIGN, MISSING)
    }
