"""`eval retrieval|answers|refusals`."""

import json
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from services.cli import render
from services.cli.client import Client
from services.cli.errors import CliError, ExitCode
from services.cli.evaluation import plot, report
from services.cli.evaluation import refusals as gate
from services.cli.evaluation.answers import judge_answers
from services.cli.evaluation.library import Library, prepare
from services.cli.evaluation.retrieval import CHANNELS, judge_retrieval
from services.cli.evaluation.sets import Question, QuestionSet, load_set
from services.cli.running import run

app = typer.Typer(help="Measure retrieval and answers on sets of questions.")

Sets = Annotated[
    list[Path], typer.Argument(help="Folders with questions.jsonl and docs; pooled when several.")
]
LeaveOut = Annotated[
    list[str] | None, typer.Option(help="Leave these files out (a shell pattern; repeatable).")
]
Limit = Annotated[
    int, typer.Option(min=0, help="Only this many questions of each set, drawn by --seed; 0: all.")
]
Seed = Annotated[int, typer.Option(help="Of the draw.")]
Report = Annotated[
    Path | None, typer.Option(help="Folder for a report for people (Markdown and a plot).")
]


@app.command()
def retrieval(
    sets: Sets,
    leave_out: LeaveOut = None,
    limit: Limit = 0,
    seed: Seed = 0,
    save: Annotated[Path | None, typer.Option(help="Write every question's figures here.")] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Compare with figures of --save; worse ones exit with 1.")
    ] = None,
    report_to: Report = None,
) -> None:
    """What search finds: recall, MRR and nDCG, fused and per channel, with 95 % intervals."""

    async def work(client: Client) -> ExitCode:
        judged = {}
        async for one, library in _libraries(client, _load(sets, leave_out, limit, seed)):
            with _asking(one, sum(q.answerable for q in one.questions)) as asked:
                judged[one.name] = await judge_retrieval(client, one, library, asked)
        tables = [report.retrieval_table(judged), report.kinds_table(judged)]
        found = report.changes(judged, baseline) if baseline else []
        if found:
            tables.append(report.changes_table(found))
        groups = {
            name: {channel: report.metric_of(some, channel, "recall@5") for channel in CHANNELS}
            for name, some in judged.items()
        }
        _publish(tables, report_to, {"recall-at-5": plot.bars("recall@5", groups)})
        if save:
            save.write_text(json.dumps(report.saved(judged), indent=1) + "\n", encoding="utf-8")
        return ExitCode.FAILED if any(change.is_worse for change in found) else ExitCode.OK

    run(work)


@app.command()
def answers(
    sets: Sets,
    leave_out: LeaveOut = None,
    limit: Limit = 0,
    seed: Seed = 0,
    foreign: Annotated[
        Path | None, typer.Option(help="A set whose questions nothing here answers.")
    ] = None,
    report_to: Report = None,
) -> None:
    """What is answered: citation precision and recall, and refusals, with 95 % intervals."""

    async def work(client: Client) -> ExitCode:
        outside = _unanswerable(foreign, limit, seed) if foreign else []
        answered = {}
        async for one, library in _libraries(client, _load(sets, leave_out, limit, seed)):
            questions = [*one.questions, *outside]
            with _asking(one, len(questions)) as asked:
                answered[one.name] = await judge_answers(client, one, library, questions, asked)
        _publish([report.answers_table(answered)], report_to, {})
        failed = any(each.failed for some in answered.values() for each in some)
        return ExitCode.FAILED if failed else ExitCode.OK

    run(work)


@app.command()
def refusals(
    sets: Sets,
    foreign: Annotated[
        list[Path] | None, typer.Option(help="Sets whose questions nothing here answers.")
    ] = None,
    leave_out: LeaveOut = None,
    limit: Limit = 0,
    seed: Seed = 0,
    report_to: Report = None,
) -> None:
    """What the gate declines, at which loss: of questions foreign to a set, and of missing facts.

    Thresholds are chosen on one half of the questions and judged on the other.
    """

    async def work(client: Client) -> ExitCode:
        outside = [each for folder in foreign or [] for each in _unanswerable(folder, limit, seed)]
        weighed, curves, pictures = {}, {}, {}
        async for one, library in _libraries(client, _load(sets, leave_out, limit, seed)):
            questions = [*one.questions, *outside]
            with _asking(one, len(questions)) as asked:
                weighed[one.name] = await gate.weigh(client, library, questions, asked)
            try:
                curves[one.name] = gate.curve(weighed[one.name])
            except ValueError as exc:
                raise CliError(f"{one.name}: {exc}", ExitCode.USAGE) from exc
            lines = gate.lines(curves[one.name])
            axis = "share of answerable questions declined"
            pictures[f"refusals-{one.name}"] = plot.curves("declined", axis, lines)
        _publish([report.refusals_table(weighed, curves)], report_to, pictures)
        return ExitCode.OK

    run(work)


def _load(
    folders: list[Path], leave_out: list[str] | None, limit: int, seed: int
) -> list[QuestionSet]:
    """Raises: CliError."""
    sets = [load_set(folder, leave_out=leave_out or ()) for folder in folders]
    if len({one.name for one in sets}) < len(sets):
        raise CliError("two sets have the same name: rename a folder", ExitCode.USAGE)
    return [
        QuestionSet(one.name, one.files, _drawn(list(one.questions), limit, seed)) for one in sets
    ]


async def _libraries(
    client: Client, sets: list[QuestionSet]
) -> AsyncIterator[tuple[QuestionSet, Library]]:
    """Each set with its documents, once all of them can be searched. Raises: CliError."""
    for one in sets:
        with render.upload_progress(len(one.files)) as changed:
            library = await prepare(client, one, changed)
        yield one, library


def _drawn(questions: list[Question], limit: int, seed: int) -> list[Question]:
    if not limit or limit >= len(questions):
        return questions
    return random.Random(seed).sample(questions, limit)  # noqa: S311 - a sample, not a secret


def _unanswerable(folder: Path, limit: int, seed: int) -> list[Question]:
    return [
        Question(one.id, one.text, gate.FOREIGN, (), alternatives=False, answerable=False)
        for one in _drawn(list(load_set(folder).questions), limit, seed)
    ]


def _publish(tables: list[report.Table], folder: Path | None, plots: dict[str, str]) -> None:
    for table in tables:
        shown = render.table_of(*table.head, title=table.title)
        for row in table.rows:
            shown.add_row(*row)
        render.out.print(shown)
        render.out.print()
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    parts = ["# Evaluation", *(table.markdown() for table in tables)]
    for name, picture in plots.items():
        (folder / f"{name}.svg").write_text(picture, encoding="utf-8")
        parts.append(f"![{name}]({name}.svg)")
    (folder / "report.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


@contextmanager
def _asking(one: QuestionSet, total: int) -> Iterator[Callable[[], None]]:
    with render.progress(f"{one.name}: asking", total) as update:
        done = 0

        def asked() -> None:
            nonlocal done
            done += 1
            update(done, "")

        yield asked
