"""Asking every question of a set, a few at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from services.cli.evaluation.sets import Question

T = TypeVar("T")


async def ask_each(
    questions: Sequence[Question],
    ask: Callable[[Question], Awaitable[T]],
    asked: Callable[[], None],
    *,
    parallel: int = 4,
) -> list[T]:
    """What `ask` says of each question, in their order; `asked` is called after each."""
    gate = asyncio.Semaphore(parallel)

    async def one(question: Question) -> T:
        async with gate:
            found = await ask(question)
        asked()
        return found

    return list(await asyncio.gather(*map(one, questions)))
