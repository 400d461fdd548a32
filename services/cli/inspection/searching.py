"""What the search did for a question, and why each hit stands where it stands."""

from collections.abc import Mapping
from typing import Final

from services.cli.client import Json
from services.cli.inspection.contents import anchor
from services.cli.inspection.gathering import Asked
from services.cli.inspection.markup import Html, Part, element, joined, table
from services.cli.inspection.texts import excerpt, said

_TEXT_CHARS: Final = 240
_Anchors = Mapping[str, int]


def searches(asked: Asked, anchors: _Anchors, place: str) -> Html:
    """One question's section.

    Args:
        anchors: Numbers of the chunks that the page shows, by id.
        place: The section's own id.
    """
    return element(
        "section",
        element(
            "h2",
            "Question: ",
            element("q", element("bdi", asked.question)),
            attributes={"id": place},
        ),
        element("h3", "In this document alone"),
        _search(asked.within, anchors),
        element("h3", "In the whole library"),
        _search(asked.library, anchors),
    )


def _search(found: Json, anchors: _Anchors) -> Html:
    why, hits = found["explanation"], found["hits"]
    names = {hit["chunk_id"]: _name(hit, anchors) for hit in hits}
    return joined(
        _verdict(why["gate"]),
        _terms(why),
        _channels(why),
        element("div", *(_ranking(name, hits, names) for name in _found_by(hits)), kind="side"),
        _hits(hits, names) if hits else element("p", "No hits."),
        _times(found),
    )


def _verdict(gate: Json) -> Html:
    word = "would be answered" if gate["passed"] else "would be declined"
    total = gate["coverage"] + gate["nearest"]
    figures = (
        f": {gate['coverage']:.2f} of the weight of its terms is covered, the nearest hit is at "
        f"{gate['nearest']:.2f}; together {total:.2f} of {gate['needed']:.2f} needed"
    )
    reason = f" ({gate['reason']})" if gate["reason"] else ""
    kind = "verdict passed" if gate["passed"] else "verdict declined"
    return element("p", element("b", word), figures, reason, ".", kind=kind)


def _terms(why: Json) -> Html:
    terms: list[Part] = [_term(term) for term in why["terms"]]
    return element("p", "Terms and their weights: ", *(terms or ["none"]))


def _term(term: Json) -> Html:
    return element("span", f"{term['term']} {term['weight']:.1f}", kind="term")


def _channels(why: Json) -> Html:
    rows: list[tuple[Part, ...]] = [
        (name, each["found"], said(each["dropped"]), f"{each['floor']:.2f}", each["below_floor"])
        for name, each in why["channels"].items()
    ]
    notes = []
    if why["matching_documents"] is not None:
        notes.append(f"Documents that match the filter: {why['matching_documents']}.")
    if why["near_copies"]:
        notes.append(f"Near-copies put below others: {why['near_copies']}.")
    if rerank := why["rerank"]:
        done = f"{rerank['reranked']} hits put in order"
        notes.append(f"Rerank by {rerank['model']}: {rerank['error'] or done}.")
    head = ("channel", "found", "not shown", "floor", "below it")
    return joined(table(head, rows), element("p", " ".join(notes)) if notes else None)


def _found_by(hits: list[Json]) -> list[str]:
    """The channels that found any of these hits, each once."""
    return list(dict.fromkeys(name for hit in hits for name in hit["explanation"]["channels"]))


def _ranking(channel: str, hits: list[Json], names: Mapping[str, Html]) -> Html:
    """A channel's own order, of the hits that are given."""
    own = [(scores, hit) for hit in hits if (scores := hit["explanation"]["channels"].get(channel))]
    own.sort(key=lambda each: int(each[0]["rank"]))
    rows: list[tuple[Part, ...]] = [
        (
            scores["rank"],
            names[hit["chunk_id"]],
            f"{scores['raw']:.3f}",
            f"{scores['score']:.2f}",
            _floor(scores),
            f"{scores['adds']:.3f}",
        )
        for scores, hit in own
    ]
    head = ("rank", "passage", "raw", "calibrated", "floor", "adds")
    return element("div", element("h4", f"{channel}, of these hits"), table(head, rows))


def _floor(scores: Json) -> Html:
    floor = f"{scores['floor']:.2f}"
    if scores["passed"]:
        return element("span", f"≥ {floor}", kind="good")
    return element("span", f"< {floor}", kind="bad")


def _hits(hits: list[Json], names: Mapping[str, Html]) -> Html:
    best = max((hit["scores"]["fused"] for hit in hits), default=0.0)
    rows = [_hit(hit, names, best) for hit in hits]
    return table(("", "passage", "fused from", "why it stands here"), rows, kind="hits")


def _hit(hit: Json, names: Mapping[str, Html], best: float) -> tuple[Part, ...]:
    path = " › ".join(hit["heading_path"])
    return (
        element("b", hit["explanation"]["rank"]),
        joined(
            element("div", names[hit["chunk_id"]]),
            element("div", excerpt(path, 160), kind="path") if path else None,
            element("div", excerpt(hit["text"], _TEXT_CHARS), kind="excerpt"),
        ),
        _parts(hit, best),
        element("ul", *(element("li", *reason) for reason in _reasons(hit, names)), kind="why"),
    )


def _parts(hit: Json, best: float) -> Html:
    """The fused score as a bar of what each channel adds, with the figures."""
    adds = hit["explanation"]["adds"]
    bars, figures = [], []
    for name, value in adds.items():
        width = 100 * value / best if best > 0 else 0.0
        style = {"style": f"width: {max(0.0, min(100.0, width)):.1f}%", "title": name}
        bars.append(element("span", kind=f"bar {name}", attributes=style))
        figures.append(element("div", f"{name} {value:.3f}"))
    total = element("b", f"{hit['scores']['fused']:.3f}")
    return joined(total, element("div", *bars, kind="bars"), *figures)


def _reasons(hit: Json, names: Mapping[str, Html]) -> list[list[Part]]:
    why = hit["explanation"]
    reasons: list[list[Part]] = []
    for name in dict.fromkeys([*why["channels"], *why["adds"]]):
        scores = why["channels"].get(name)
        if scores is None:
            near = ": counted as near as its last" if why["adds"][name] else ""
            reasons.append([f"not found by {name}{near}"])
        else:
            passed = "passes" if scores["passed"] else "is below"
            reasons.append([f"{name}: rank {scores['rank']}, {passed} the floor"])
    matched = why["matched_terms"]
    reasons.append(["matches ", *map(_term, matched)] if matched else ["matches none of the terms"])
    if hit["scores"].get("rerank") is not None:
        reasons.append([f"rerank score {hit['scores']['rerank']:.3f}"])
    if why["fused_rank"] != why["rank"]:
        way = "up" if why["rank"] < why["fused_rank"] else "down"
        reasons.append([f"moved {way} from fused rank {why['fused_rank']}"])
    if twin := hit.get("duplicate_of"):
        reasons.append(["says the same as ", names.get(twin) or element("code", twin)])
    return reasons


def _name(hit: Json, anchors: _Anchors) -> Html:
    page = f", page {hit['page']}" if hit["page"] is not None else ""
    ordinal = anchors.get(hit["chunk_id"])
    if ordinal is None:
        name = element("bdi", excerpt(hit["document_name"], 60))
        return joined(name, page, f", characters {hit['start']}–{hit['end']}")
    link = {"href": f"#{anchor(ordinal)}"}
    return joined(element("a", f"Chunk {ordinal + 1}", attributes=link), page)


def _times(found: Json) -> Html:
    steps = ", ".join(
        f"{step} {1_000 * s:.0f}" for step, s in found["explanation"]["seconds"].items()
    )
    return element("p", f"Milliseconds: {found['took_ms']:.0f} in all; {steps}", kind="note")
