"""What the API accepts as a chunk plan, the chunker can follow: the two share no code."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from libs.chunking.plan import STRATEGIES, ChunkPlan, override_plan
from services.ingest.api.schemas import PlanRequest

SIZES = st.none() | st.integers(0, 21_000)
RECOMMENDED = [ChunkPlan(), ChunkPlan(child_max_chars=800, table_max_chars=1200)]


@given(
    plan=st.sampled_from(RECOMMENDED),
    strategies=st.none() | st.lists(st.sampled_from(STRATEGIES), min_size=1, max_size=2),
    sizes=st.tuples(SIZES, SIZES, SIZES, SIZES),
)
def test_an_accepted_plan_is_followed(
    plan: ChunkPlan, strategies: list[str] | None, sizes: tuple[int | None, ...]
) -> None:
    names = ("child_max_chars", "table_max_chars", "parent_max_chars", "parent_min_chars")
    asked = {"strategies": strategies, **dict(zip(names, sizes, strict=True))}
    try:
        wanted = PlanRequest.model_validate(asked).fields()
    except ValidationError:
        assume(False)
    followed = override_plan(plan, wanted)
    for name in names:
        if name in wanted:
            assert getattr(followed, name) == wanted[name]


@pytest.mark.parametrize(
    "asked",
    [
        {"child_max_chars": 900, "parent_max_chars": 500},
        {"parent_min_chars": 900, "parent_max_chars": 500},
        {"child_max_chars": 49},
        {"strategies": ["semantic"]},
    ],
)
def test_plans_that_nobody_could_follow_are_refused(asked: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PlanRequest.model_validate(asked)
