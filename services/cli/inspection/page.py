"""The report: one page that needs nothing from outside, and runs nothing."""

from collections.abc import Mapping

from services.cli.inspection.contents import anchors, contents
from services.cli.inspection.gathering import Asked, Inspected
from services.cli.inspection.markup import Html, element, joined, style_sheet
from services.cli.inspection.overview import overview, plan
from services.cli.inspection.searching import searches
from services.cli.inspection.style import STYLE
from services.cli.inspection.texts import excerpt

# Should a text ever get through unescaped, it can neither run nor fetch anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(inspected: Inspected) -> str:
    """The whole document as HTML, to be stored in UTF-8."""
    shown = anchors(inspected.parsed)
    counts = inspected.document["active_counts"] or inspected.document["counts"]
    questions = {f"question-{n}": asked for n, asked in enumerate(inspected.asked, start=1)}
    body = [overview(inspected), _ways(inspected, questions), plan(inspected)]
    body += [searches(asked, shown, place) for place, asked in questions.items()]
    if inspected.parsed:
        body.append(contents(inspected.parsed, counts.get("chunks")))
    head = element(
        "head",
        _meta(charset="utf-8"),
        _meta(**{"http-equiv": "Content-Security-Policy", "content": _POLICY}),
        _meta(name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{inspected.document['name']} · Sluice"),
        style_sheet(STYLE),
    )
    return "<!doctype html>\n" + element("html", joined(head, element("body", *body)))


def _ways(inspected: Inspected, questions: Mapping[str, Asked]) -> Html:
    """Links to the page's sections."""
    ways = {"plan": "Plan"} | {at: excerpt(asked.question, 60) for at, asked in questions.items()}
    if inspected.parsed:
        ways["contents"] = "Blocks and chunks"
    links = (element("a", name, attributes={"href": f"#{at}"}) for at, name in ways.items())
    return element("nav", *links)


def _meta(**attributes: str) -> Html:
    return element("meta", attributes=attributes)
