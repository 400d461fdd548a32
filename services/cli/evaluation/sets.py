"""Question sets on disk: `questions.jsonl` beside a folder `docs`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from services.cli.errors import CliError, ExitCode


@dataclass(frozen=True, slots=True)
class Reference:
    """A place that answers a question: a stretch of a document's text, or a page of it."""

    document: str  # file name, as uploaded
    text: str
    start: int | None = None  # code points into the file
    page: int | None = None  # from 1; set for files that have pages


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    kind: str
    references: Sequence[Reference]
    alternatives: bool  # any one reference is enough; else each counts
    answerable: bool


@dataclass(frozen=True, slots=True)
class QuestionSet:
    name: str
    files: Mapping[str, Path]  # by file name
    questions: Sequence[Question]


def load_set(folder: Path, *, leave_out: Sequence[str] = ()) -> QuestionSet:
    """Read a set.

    A line of `questions.jsonl` has `id`, `question` and `references` (each `doc_id` with `text`,
    and `start` in a text file or `page_1based` where there are pages); optionally `type`,
    `answerable` (true) and `answers` (more than one: then any one reference is enough). `doc_id`
    is the name of a file in `docs` without its extension.

    Args:
        leave_out: Shell patterns of file names that are not part of the library this time;
            questions that only they can answer become unanswerable ones.

    Raises: CliError that names the file and line when something is missing or wrong.
    """
    listing, docs = folder / "questions.jsonl", folder / "docs"
    if not listing.is_file() or not docs.is_dir():
        problem = f"{folder} is no question set: it needs questions.jsonl and a folder docs"
        raise CliError(problem, ExitCode.USAGE)
    files = {
        path.name: path
        for path in sorted(docs.iterdir())
        if path.is_file() and not any(fnmatch(path.name, pattern) for pattern in leave_out)
    }
    by_stem = {path.stem: name for name, path in files.items()}
    known = {path.stem for path in docs.iterdir()}
    questions = []
    with listing.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                questions.append(_question(json.loads(line), by_stem, known))
            except (ValueError, KeyError, TypeError) as exc:
                problem = f"{listing}, line {number}: {_said(exc)}"
                raise CliError(problem, ExitCode.USAGE) from exc
    if not questions:
        raise CliError(f"{listing} holds no question", ExitCode.USAGE)
    return QuestionSet(folder.resolve().name, files, questions)


def _question(fields: dict[str, Any], by_stem: Mapping[str, str], known: set[str]) -> Question:
    """Raises: KeyError, TypeError, ValueError."""
    references = []
    for reference in fields["references"]:
        document = str(reference["doc_id"])
        if document not in known:
            raise ValueError(f"no file {document}.* in docs")
        if document in by_stem:
            references.append(
                Reference(
                    by_stem[document],
                    str(reference["text"]),
                    reference.get("start"),
                    reference.get("page_1based"),
                )
            )
    return Question(
        id=str(fields["id"]),
        text=str(fields["question"]),
        kind=str(fields.get("type", "")),
        references=references,
        alternatives=len(fields.get("answers") or ()) > 1,
        answerable=bool(fields.get("answerable", True)) and bool(references),
    )


def _said(exc: Exception) -> str:
    return f"{exc} is missing" if isinstance(exc, KeyError) else str(exc)
