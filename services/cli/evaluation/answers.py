"""How well answers rest on the right places, and what is declined."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.cli.asking import ask, start_conversation
from services.cli.client import Client, Json
from services.cli.evaluation.each import ask_each
from services.cli.evaluation.library import Library
from services.cli.evaluation.matching import Matcher
from services.cli.evaluation.sets import Question, QuestionSet
from services.cli.patience import Patience

PARALLEL = 2


@dataclass(frozen=True, slots=True)
class Answered:
    """One question's answer, judged. None: nothing to judge."""

    question: Question
    declined: bool
    failed: bool
    precision: float | None  # share of the citations that point at a reference
    right_document: float | None  # share of the citations that point into a right document
    recall: float | None  # share of the references that are cited


async def judge_answers(
    client: Client,
    question_set: QuestionSet,
    library: Library,
    questions: Sequence[Question],
    asked: Callable[[], None],
) -> list[Answered]:
    """Ask each question in a conversation of its own; `asked` is called after each.

    The whole of the tenant's library is searched, as it is for people. Raises: CliError.
    """
    matcher = Matcher(question_set.files)
    patience = Patience()

    async def judge(question: Question) -> Answered:
        conversation = await start_conversation(client, patience)
        events = [event async for event in ask(client, conversation, question.text, patience)]
        return _judged(question, *events[-1], library, matcher)

    return await ask_each(questions, judge, asked, parallel=PARALLEL)


def _judged(
    question: Question, kind: str, end: Json, library: Library, matcher: Matcher
) -> Answered:
    declined = bool(end.get("declined"))
    if kind != "done" or declined or not question.answerable:
        return Answered(question, declined, kind != "done", None, None, None)
    pointed: list[set[int]] = []
    right = 0
    for citation in end["citations"]:
        names = library.files.get(citation["document_id"], ())
        right += any(reference.document in names for reference in question.references)
        pointed.append(
            {
                index
                for index, reference in enumerate(question.references)
                for name in names
                if matcher.finds(name, citation["quote"], citation["page"], reference)
            }
        )
    cited = set().union(*pointed)
    count = len(pointed)
    wanted = 1 if question.alternatives else len(question.references)
    return Answered(
        question,
        declined,
        failed=False,
        precision=sum(map(bool, pointed)) / count if count else None,
        right_document=right / count if count else None,
        recall=min(1.0, len(cited) / wanted),
    )
