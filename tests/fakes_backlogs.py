"""A broker that only knows how far groups have come."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from libs.eventbus.backlog import Backlog
from libs.eventbus.message import Place
from libs.kernel import TransientError


@dataclass
class FakeBacklogs:
    """`Backlogs`; `known` holds what differs from an empty log. `away` is a broker that is away."""

    known: dict[tuple[str, Place], Backlog] = field(default_factory=dict)
    away: bool = False

    async def of_groups(
        self, places: Mapping[str, Collection[Place]]
    ) -> dict[str, dict[Place, Backlog]]:
        if self.away:
            raise TransientError("the broker is away")
        return {
            group: {place: self.known.get((group, place), Backlog(0, 0)) for place in wanted}
            for group, wanted in places.items()
        }
