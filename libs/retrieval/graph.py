"""The graph channel: rules whose names and numbers are those of the question.

Precision goes first: a chunk is lifted only where a rule in it is met by a number or date of the
question, or has all of several names that it asks about; a rule that its numbers contradict never
lifts. A question that names nothing, and a tenant without a graph, cost next to nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from libs.documents.graph import Condition, Fit, Kind, Verb, conditions, fit, names, verbs
from libs.storage.ports import IndexHit
from libs.storage.sql import Database, graph
from libs.storage.sql.graph import StoredFact

MAX_FACTS: Final = 500  # read in each step: SQL does not compare amounts, so rules are many
MAX_NAMES: Final = 64  # of a question, that are looked for
MAX_NEIGHBOURS: Final = 12  # names that the second step starts from
_MET, _ALL_NAMES, _SECOND_STEP = 0.6, 0.3, 0.5
_OTHER_VERB = 0.5  # share that is left of a rule which says something else than is asked
_ABOUT = (Kind.ACTIVITY, Kind.ORGANISATION)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question names."""

    names: frozenset[str]
    conditions: Sequence[Condition]
    verbs: frozenset[Verb]


def read(question: str) -> Asked | None:
    """None: it names nothing that a rule could be about."""
    found = frozenset(name.id for name in names(question))
    if not found:
        return None
    return Asked(found, conditions(question), verbs(question))


async def search(
    db: Database, tenant: str, question: str, *, domains: Sequence[str] = ()
) -> list[IndexHit]:
    """The chunks that prove what is asked, best first, with scores in (0, 1].

    At most two steps: rules about the question's names, then, where it asks for more than those
    say ("who approves it, and whom do they report to?"), rules about who they lead to.
    """
    asked = read(question)
    if asked is None or (len(asked.names) < 2 and not asked.conditions):
        return []
    async with db.reading() as sql:
        first = await graph.facts_about(
            sql, tenant, sorted(asked.names)[:MAX_NAMES], domains=domains, limit=MAX_FACTS
        )
        scored = [(fact, score) for fact in first if (score := score_of(fact, asked)) > 0]
        second = second_step(asked, scored)
        if second:
            start = sorted(second)[:MAX_NEIGHBOURS]
            further = await graph.facts_about(sql, tenant, start, domains=domains, limit=MAX_FACTS)
            scored += _continued(further, second, asked)
    return _hits(scored)


def score_of(fact: StoredFact, asked: Asked) -> float:
    """How much a rule says about what is asked, in [0, 1]."""
    ends = {*fact.subjects, *fact.objects}
    matched = ends & asked.names
    outcome = fit(asked.conditions, fact.conditions)
    if not matched or outcome is Fit.CONTRADICTED or _about_something_else(fact, asked):
        return 0.0
    share = len(matched) / len(asked.names)
    says_it = not asked.verbs or fact.verb in asked.verbs
    if outcome is Fit.UNRELATED:
        several = len(matched) > 1 and share == 1
        return _ALL_NAMES if several and asked.verbs and says_it else 0.0
    if fact.verb == Verb.LIMITED and len(matched) < 2:
        return 0.0
    score = (_MET + (1 - _MET) * share) * (1.0 if says_it else _OTHER_VERB)
    return score / 2 if outcome is Fit.PARTLY else score


def second_step(asked: Asked, scored: Iterable[tuple[StoredFact, float]]) -> Mapping[str, float]:
    """Where to go on from, with the score that led there; nothing when all verbs are answered."""
    scored = list(scored)
    if not scored or asked.verbs <= {fact.verb for fact, _ in scored}:
        return {}
    led: dict[str, float] = {}
    for fact, score in scored:
        for name in fact.objects:
            if name.startswith((Kind.ROLE, Kind.DEPARTMENT)):
                led[name] = max(score, led.get(name, 0.0))
    return led


def _continued(
    further: Iterable[StoredFact], led: Mapping[str, float], asked: Asked
) -> list[tuple[StoredFact, float]]:
    return [
        (fact, _SECOND_STEP * max(led[name] for name in fact.subjects if name in led))
        for fact in further
        if fact.verb in asked.verbs
        and any(name in led for name in fact.subjects)
        and fit(asked.conditions, fact.conditions) is not Fit.CONTRADICTED
    ]


def _about_something_else(fact: StoredFact, asked: Asked) -> bool:
    """Both name an activity (or an organisation), and not the same one."""
    for kind in _ABOUT:
        its = {name for name in fact.subjects if name.startswith(f"{kind}:")}
        wanted = {name for name in asked.names if name.startswith(f"{kind}:")}
        if its and wanted and not its & wanted:
            return True
    return False


def _hits(scored: Iterable[tuple[StoredFact, float]]) -> list[IndexHit]:
    best: dict[str, IndexHit] = {}
    for fact, score in scored:
        known = best.get(fact.chunk_id)
        if known is None or known.score < score:
            hit = IndexHit(fact.chunk_id, fact.document_id, fact.generation, score)
            best[fact.chunk_id] = hit
    return sorted(best.values(), key=lambda hit: (-hit.score, hit.chunk_id))
