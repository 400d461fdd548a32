"""Figures as tables, for people (Markdown), for scripts (JSON), and against earlier ones."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.cli.errors import CliError, ExitCode
from services.cli.evaluation.answers import Answered
from services.cli.evaluation.metrics import Estimate, estimate
from services.cli.evaluation.refusals import KINDS, Point, Weighed, as_shipped
from services.cli.evaluation.retrieval import CHANNELS, METRICS, Judged

POOLED = "all sets"

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    head: Row
    rows: Sequence[Row]

    def markdown(self) -> str:
        lines = [self.head, tuple("---" for _ in self.head), *self.rows]
        return f"### {self.title}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in lines)


def retrieval_table(judged: Mapping[str, Sequence[Judged]]) -> Table:
    """A row per set and channel: each metric's mean with its 95 % interval."""
    groups = dict(judged)
    if len(groups) > 1:
        groups[POOLED] = [one for some in judged.values() for one in some]
    rows = [
        (name, str(len(some)), channel, *(str(metric_of(some, channel, m)) for m in METRICS))
        for name, some in groups.items()
        for channel in CHANNELS
    ]
    return Table("Retrieval", ("set", "questions", "channel", *METRICS), rows)


def kinds_table(judged: Mapping[str, Sequence[Judged]]) -> Table:
    """A row per set and kind of question: recall@5 of each channel."""
    rows = []
    for name, some in judged.items():
        for kind in sorted({one.question.kind for one in some}):
            of_kind = [one for one in some if one.question.kind == kind]
            figures = (f"{metric_of(of_kind, c, 'recall@5').mean:.3f}" for c in CHANNELS)
            rows.append((name, kind, str(len(of_kind)), *figures))
    return Table("recall@5 by kind of question", ("set", "kind", "questions", *CHANNELS), rows)


def metric_of(judged: Sequence[Judged], channel: str, metric: str) -> Estimate:
    return estimate([one.values[channel][metric] for one in judged])


def answers_table(answered: Mapping[str, Sequence[Answered]]) -> Table:
    """A row per set. Refusals are shares of the questions that do and do not have an answer."""
    rows = []
    for name, some in answered.items():
        yes = [one for one in some if one.question.answerable]
        no = [one for one in some if not one.question.answerable]
        rows.append(
            (
                name,
                f"{len(yes)} + {len(no)}",
                _share([one.precision for one in yes]),
                _share([one.right_document for one in yes]),
                _share([one.recall for one in yes]),
                _share([float(one.declined) for one in yes]),
                _share([float(one.declined) for one in no]),
                str(sum(one.failed for one in some)),
            )
        )
    head = (
        "set",
        "answerable + not",
        "citation precision",
        "right document",
        "citation recall",
        "declined though answerable",
        "declined when not",
        "failed",
    )
    return Table("Answers", head, rows)


def refusals_table(
    weighed: Mapping[str, Sequence[Weighed]], curves: Mapping[str, Sequence[Point]]
) -> Table:
    """What the gate declines: as it is, and at thresholds chosen on the other half of questions."""
    rows = []
    for name, some in weighed.items():
        rows.append((name, "as it is, all questions", "", *_declined(as_shipped(some))))
        rows += [
            (name, f"{point.loss:.0%} lost", f"{point.threshold:.2f}", *_declined(point.declined))
            for point in curves[name]
        ]
    return Table("Refusals", ("set", "threshold", "certainty", *KINDS), rows)


def _declined(shares: Mapping[str, Estimate]) -> Row:
    return tuple(str(shares[kind]) if kind in shares else "-" for kind in KINDS)


def _share(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return str(estimate(known)) if known else "-"


@dataclass(frozen=True, slots=True)
class Change:
    """A metric of the fused ranking against stored figures, over the same questions."""

    metric: str
    difference: Estimate

    @property
    def is_worse(self) -> bool:
        return self.difference.high < 0


def saved(judged: Mapping[str, Sequence[Judged]]) -> dict[str, Any]:
    """What `changes` compares with later: every question's figures."""
    return {
        "retrieval": {
            f"{name}/{one.question.id}": dict(one.values["fused"])
            for name, some in judged.items()
            for one in some
        }
    }


def changes(judged: Mapping[str, Sequence[Judged]], baseline: Path) -> list[Change]:
    """Paired differences to stored figures. Raises: CliError when nothing can be compared."""
    try:
        before = json.loads(baseline.read_text(encoding="utf-8"))["retrieval"]
        now = saved(judged)["retrieval"]
        shared = sorted(now.keys() & before.keys())
        if not shared:
            raise CliError(f"{baseline} holds none of these questions", ExitCode.USAGE)
        return [
            Change(metric, estimate([now[key][metric] - before[key][metric] for key in shared]))
            for metric in METRICS
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        problem = f"{baseline} holds no figures saved by --save: {exc}"
        raise CliError(problem, ExitCode.USAGE) from exc


def changes_table(found: Sequence[Change]) -> Table:
    rows = [(one.metric, str(one.difference), "worse" if one.is_worse else "") for one in found]
    return Table("Against the baseline (fused)", ("metric", "difference", ""), rows)
