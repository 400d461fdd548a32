import asyncio

import pytest

from libs.eventbus.waiting import until_any
from tests.unit.libs.kernel.test_tasks import broken, deaf, impatient

__all__ = ["impatient"]


@pytest.mark.usefixtures("impatient")
async def test_what_lost_its_cancellation_holds_nobody_up() -> None:
    async with asyncio.timeout(60):
        await until_any(deaf(1), asyncio.sleep(0))


async def test_the_error_of_the_first_to_end_is_raised() -> None:
    with pytest.raises(ValueError, match="broken"):
        await until_any(asyncio.Event().wait(), broken())
