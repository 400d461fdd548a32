"""How well search finds what answers a set's questions, fused and per channel."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from services.cli.client import Client, Json
from services.cli.evaluation.each import ask_each
from services.cli.evaluation.library import Library
from services.cli.evaluation.matching import Matcher
from services.cli.evaluation.metrics import ndcg_at, recall_at, reciprocal_rank
from services.cli.evaluation.sets import Question, QuestionSet
from services.cli.patience import Patience

CHANNELS = ("fused", "vector", "keyword")
METRICS = ("recall@5", "recall@10", "mrr@10", "ndcg@10")
CANDIDATES = 100  # as many as search gives: both channels' hits are among them

# Values by channel and metric.
Values = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Judged:
    """One question's figures."""

    question: Question
    values: Values


async def judge_retrieval(
    client: Client,
    question_set: QuestionSet,
    library: Library,
    asked: Callable[[], None],
) -> list[Judged]:
    """Ask every answerable question; `asked` is called after each.

    A channel's ranking is taken from the scores that search shows, so it is the one the
    platform fused, after floors; `fused` is the order in which search gives its hits. Raises:
    CliError.
    """
    matcher = Matcher(question_set.files)
    patience = Patience()

    async def judge(question: Question) -> Judged:
        body = {"query": question.text, "top_k": CANDIDATES, "domains": [library.domain]}
        found = await patience.through(partial(client.post, "/v1/search", body))
        return Judged(question, _values(question, found["hits"], library, matcher))

    questions = [question for question in question_set.questions if question.answerable]
    return await ask_each(questions, judge, asked)


def _values(
    question: Question, hits: Sequence[Json], library: Library, matcher: Matcher
) -> dict[str, dict[str, float]]:
    values = {}
    for channel in CHANNELS:
        ranked = [hit for hit in hits if hit["scores"][channel] is not None]
        if channel != "fused":
            ranked.sort(key=lambda hit: -hit["scores"][channel])
        found = [_found(question, hit, library, matcher) for hit in ranked[:10]]
        wanted, any_one = len(question.references), question.alternatives
        values[channel] = {
            "recall@5": recall_at(found, wanted, 5, any_one=any_one),
            "recall@10": recall_at(found, wanted, 10, any_one=any_one),
            "mrr@10": reciprocal_rank(found, 10),
            "ndcg@10": ndcg_at(found, wanted, 10, any_one=any_one),
        }
    return values


def _found(question: Question, hit: Json, library: Library, matcher: Matcher) -> frozenset[int]:
    """Which of the question's references a hit finds, by index."""
    names = library.files.get(hit["document_id"], ())
    return frozenset(
        index
        for index, reference in enumerate(question.references)
        if any(matcher.finds(name, hit["text"], hit["page"], reference) for name in names)
    )
