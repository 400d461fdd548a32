"""How a reader tells its process whether it works."""

from collections.abc import Callable

REJOIN_DELAY_S = 1.0  # after the broker was lost, until the next try

# Hears what keeps a reader from working (`kafka`, `sql`, `disk`, `failing-messages`); None: works.
Report = Callable[[str | None], None]


def report_nothing(_problem: str | None) -> None:
    """For readers whose process shows no readiness."""
