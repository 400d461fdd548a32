"""The header with which a client makes a repeat of its request harmless."""

from typing import Annotated

from fastapi import Header

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=191,
        pattern=r"^[\x21-\x7e]+$",
        description="A repeat with the same key gets what the first request made.",
    ),
]
