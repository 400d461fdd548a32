"""Who a request acts for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    """The holder of an API key. The tenant comes from here and never from a request."""

    tenant: str
    key_id: str
    role: str
