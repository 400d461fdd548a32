"""Facts that rules find in text: names, values, conditions and relations. Pure and linear.

The same rules read documents and questions, so both meet by the same keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from libs.documents.graph.conditions import Condition, conditions
from libs.documents.graph.definitions import definitions
from libs.documents.graph.fitting import Fit, fit
from libs.documents.graph.intervals import Interval
from libs.documents.graph.names import Kind, Name, names
from libs.documents.graph.relations import Relation, relations
from libs.documents.graph.verbs import Verb, verbs
from libs.documents.graph.widths import plain_width

__all__ = [
    "Condition",
    "Extraction",
    "Fit",
    "Interval",
    "Kind",
    "Name",
    "Relation",
    "Verb",
    "conditions",
    "extract",
    "fit",
    "names",
    "verbs",
]


@dataclass(frozen=True, slots=True)
class Extraction:
    """What rules found in a text; spans are offsets into it."""

    names: Sequence[Name]
    conditions: Sequence[Condition]
    relations: Sequence[Relation]


def extract(text: str, *, headings: Sequence[str] = ()) -> Extraction:
    """Everything the rules find in `text`; headings only tell what its rules are about."""
    text = plain_width(text)
    found, bounds = names(text), conditions(text)
    around = [name for heading in headings for name in names(heading)]
    terms = list(definitions(text))
    stated = relations(text, found, bounds, around=around)
    stated += [Relation(Verb.MEANS, (term.id,), (), (), term.start, term.end) for term in terms]
    return Extraction([*found, *terms], bounds, stated)
