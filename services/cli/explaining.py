"""What `search --explain` says about the search as a whole."""

from services.cli.client import Json
from services.cli.render import out


def print_explanation(why: Json) -> None:
    out.print("\nWhat the search did", style="bold")
    terms = ", ".join(f"{each['term']} {each['weight']:.1f}" for each in why["terms"])
    out.print(f"terms and their weights: {terms or 'none'}")
    if why["matching_documents"] is not None:
        out.print(f"documents that match the filters: {why['matching_documents']}")
    for name, channel in why["channels"].items():
        dropped = "".join(f", {count} {reason}" for reason, count in channel["dropped"].items())
        below = f", {channel['below_floor']} below the floor {channel['floor']:.2f}"
        out.print(f"{name}: {channel['found']} found{dropped}{below}")
    if why["near_copies"]:
        out.print(f"near-copies put below others: {why['near_copies']}")
    if rerank := why["rerank"]:
        done = f"{rerank['reranked']} hits put in order"
        out.print(f"{rerank['model']}: {rerank['error'] or done}")
    gate = why["gate"]
    would = "would be answered" if gate["passed"] else "would be declined"
    total = gate["coverage"] + gate["nearest"]
    out.print(
        f"a question {would}: {gate['coverage']:.2f} of its terms' weight is covered, "
        f"the nearest hit is at {gate['nearest']:.2f}; {total:.2f} of {gate['needed']:.2f}"
    )
    times = ", ".join(f"{step} {1_000 * took:.0f}" for step, took in why["seconds"].items())
    out.print(f"milliseconds: {times}", style="dim")
