"""The chunk plan: which strategies cut a document, into which sizes, and why."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from libs.kernel import PermanentError
from services.chunker.domain.profile import Profile

STRATEGIES = ("structure", "recursive")
MAX_PARENT_CHARS = 2200


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """Sizes in characters. `recursive` alone ignores headings and block borders.

    Raises: ValueError for sizes or strategies that no chunker could follow.
    """

    strategies: tuple[str, ...] = STRATEGIES
    parent_max_chars: int = MAX_PARENT_CHARS
    parent_min_chars: int = 500  # below this a section shares its parent with the next one
    child_max_chars: int = 420
    table_max_chars: int = 900  # tables and code up to this stay whole as one child
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.strategies or not set(self.strategies) <= set(STRATEGIES):
            raise ValueError(f"strategies are a non-empty choice of {', '.join(STRATEGIES)}")
        sizes_fit = (
            50 <= self.child_max_chars <= self.table_max_chars <= self.parent_max_chars
            and 0 <= self.parent_min_chars <= self.parent_max_chars <= 20_000
        )
        if not sizes_fit:
            raise ValueError("50 <= child <= table <= parent <= 20000 characters does not hold")


def recommend_plan(profile: Profile) -> ChunkPlan:
    """The plan for a document's profile; `reasons` say in English what decided it."""
    reasons = []
    child_max_chars, table_max_chars = 420, 900
    if profile.latin_share > 0.5:
        child_max_chars, table_max_chars = 800, 1200
        reasons.append("mostly Latin script: words are several characters long, larger children")
    if profile.heading_count:
        reasons.append(f"{profile.heading_count} headings: sections bound the parents")
    else:
        reasons.append("no headings: paragraphs bound the parents")
    if profile.table_share > 0.3:
        reasons.append("many tables: kept whole where they fit, else cut between rows")
    if profile.longest_block_chars > MAX_PARENT_CHARS:
        reasons.append("blocks longer than a parent: cut between sentences")
    return ChunkPlan(
        child_max_chars=child_max_chars, table_max_chars=table_max_chars, reasons=tuple(reasons)
    )


def override_plan(plan: ChunkPlan, wanted: Mapping[str, Any] | None) -> ChunkPlan:
    """The recommended plan with the fields a user asked for; the sizes he left open give way.

    Raises: PermanentError `bad-plan`.
    """
    if not wanted:
        return plan
    fields = {**asdict(plan), **wanted}
    try:
        _make_room(fields, wanted)
        fields["strategies"] = tuple(fields["strategies"])
        fields["reasons"] = (*plan.reasons, f"set by the user: {', '.join(sorted(wanted))}")
        return ChunkPlan(**fields)
    except (TypeError, ValueError) as exc:
        raise PermanentError("bad-plan", f"The chunk plan cannot be followed: {exc}.") from exc


def _make_room(fields: dict[str, Any], wanted: Mapping[str, Any]) -> None:
    """Move the sizes that were not asked for, so that child <= table <= parent holds."""
    sizes = ("child_max_chars", "table_max_chars", "parent_max_chars")
    for at, size in enumerate(sizes):
        if size not in wanted:
            smaller = [wanted[name] for name in sizes[:at] if name in wanted]
            larger = [wanted[name] for name in sizes[at + 1 :] if name in wanted]
            fields[size] = min([max([fields[size], *smaller]), *larger])
    if "parent_min_chars" not in wanted:
        fields["parent_min_chars"] = min(fields["parent_min_chars"], fields["parent_max_chars"])


def requested_fields(stored: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the user asked for: a stored plan is either his wish or what `plan_record` made."""
    if not stored:
        return {}
    return dict(stored.get("requested", stored))


def plan_record(plan: ChunkPlan, requested: Mapping[str, Any]) -> dict[str, Any]:
    """The plan as the document keeps it: what was used, and what of it was asked for."""
    return {**asdict(plan), "requested": dict(requested)}
