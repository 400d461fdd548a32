"""A run as people read it: the seed, the schedule, what came of each wish, and one table."""

from collections import Counter

from tests.chaos.audit import DOUBLED, LOST, STUCK, WRONG
from tests.chaos.run import Outcome


def schedule(outcome: Outcome) -> str:
    lines = [f"seed {outcome.seed}", *map(str, outcome.schedule)]
    if outcome.missed:
        lines += ["not hit, as nobody was there:", *map(str, outcome.missed)]
    return "\n".join(lines)


def faults(outcome: Outcome) -> str:
    return "\n".join(map(str, outcome.findings.faults))


HEADER = (
    "| seed | faults | documents (again, re-parsed, cancelled, deleted, unreadable) | turns"
    " | connections | lost | doubled | stuck | wrong | s |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


def row(outcome: Outcome) -> str:
    """One line of the table whose head is `HEADER`."""
    ledger, counts = outcome.ledger, outcome.findings.counts()
    fates = Counter(entry.wish.fate.name for entry in ledger.all_documents)
    shares = ", ".join(
        str(number)
        for number in (
            fates["AGAIN"],
            fates["REPARSE"],
            sum(entry.cancelled for entry in ledger.all_documents),
            fates["DELETE"] + fates["RETURN"],
            fates["BROKEN"],
        )
    )
    connections = sum(entry.seen.connections for entry in ledger.turns)
    cells = (
        outcome.seed,
        len(outcome.schedule) - len(outcome.missed),
        f"{len(ledger.all_documents)} ({shares})",
        len(ledger.turns),
        connections,
        counts[LOST],
        counts[DOUBLED],
        counts[STUCK],
        counts[WRONG],
        f"{outcome.seconds:.0f}",
    )
    return f"| {' | '.join(map(str, cells))} |"
