"""What a document is and how it fares, and the plan that it is cut by."""

import json
from typing import Any, Final

from services.cli.client import Json
from services.cli.inspection.gathering import Inspected
from services.cli.inspection.markup import Html, Part, element, table
from services.cli.inspection.texts import excerpt, number, said

_SIZES: Final = ("parent_max_chars", "parent_min_chars", "child_max_chars", "table_max_chars")
_DATA_CHARS: Final = 300


def overview(inspected: Inspected) -> Html:
    document = inspected.document
    state = element("span", document["state"], kind=f"state {document['state']}")
    facts: list[tuple[Part, ...]] = [
        ("id", element("code", document["id"])),
        ("type", document["media_type"]),
        ("size", f"{number(document['size'])} bytes"),
        ("SHA-256", element("code", document["sha256"])),
        ("domain", document["domain"] or "—"),
        ("tags", said(document["tags"])),
        ("generation", _generation(document)),
        ("counts", said(document["active_counts"] or document["counts"])),
        ("uploaded", document["created_at"]),
    ]
    if inspected.parsed:
        outline = inspected.parsed.outline
        facts += [(name, outline[name]) for name in ("title", "language") if outline[name]]
    for name in ("same_text_as", "near_duplicates"):
        if others := document.get(name):
            facts.append((_words(name), said(others)))
    return element(
        "header",
        element("h1", element("bdi", document["name"]), " ", state),
        *_troubles(inspected),
        table((), facts, kind="facts"),
        element("details", element("summary", "Timeline"), _timeline(document)),
    )


def plan(inspected: Inspected) -> Html:
    """What is recommended and why, what was asked for, and what is in force."""
    found = inspected.plan
    used, recommended = found["used"], found.get("recommended")
    parts: list[Part] = [element("h2", "Plan", attributes={"id": "plan"})]
    if used is None:
        asked = said(found["requested"]) if found["requested"] else "what is recommended"
        parts.append(element("p", f"Not cut yet; to be cut by: {asked}."))
        return element("section", *parts)
    usual = (recommended or used)["reasons"]
    further = [reason for reason in used["reasons"] if reason not in usual]
    rows = [
        _setting(name, recommended, found["requested"], used) for name in ("strategies", *_SIZES)
    ]
    parts += [
        table(("", "recommended", "asked for", "in force"), rows),
        element("h3", "Why"),
        _list(usual),
    ]
    if further:
        parts += [element("h3", "In force, because"), _list(further)]
    if profile := found.get("profile"):
        seen: list[tuple[Part, ...]] = [
            (_words(name), said(value)) for name, value in profile.items()
        ]
        what = element("summary", "The profile it was chosen by")
        parts.append(element("details", what, table((), seen, kind="facts")))
    return element("section", *parts)


def _list(texts: list[str]) -> Html:
    return element("ul", *(element("li", text) for text in texts))


def _setting(name: str, recommended: Json | None, asked: Json, used: Json) -> tuple[Part, ...]:
    own = said(asked[name]) if name in asked else "—"
    ours = said(recommended.get(name)) if recommended else "—"
    return _words(name), ours, own, element("b", said(used.get(name)))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _generation(document: Json) -> str:
    newest, active = document["generation"], document["active_generation"]
    if active is None:
        return f"{newest}, not searchable yet"
    return f"{newest}" if newest == active else f"{newest}; search still shows {active}"


def _troubles(inspected: Inspected) -> list[Part]:
    document = inspected.document
    found = []
    if document["reason"]:
        stage = f" at {document['stage']}" if document["stage"] else ""
        found.append(
            f"{document['state']}{stage}: {document['reason']}. {document['detail'] or ''}"
        )
    if inspected.missing:
        found.append(inspected.missing)
    if inspected.parsed:
        found += inspected.parsed.outline["warnings"]
    return [element("p", text, kind="warn") for text in found]


def _timeline(document: Json) -> Html:
    rows: list[tuple[Part, ...]] = [
        (entry["at"], entry["stage"], entry["generation"], _data(entry["data"]))
        for entry in document["timeline"]
    ]
    return table(("at", "stage", "generation", ""), rows)


def _data(data: Any) -> str:
    return excerpt(json.dumps(data, ensure_ascii=False), _DATA_CHARS) if data else ""
