"""Who a request acts for, and what it may do."""

from dataclasses import dataclass

# Least first; each may do what those before it may. reader: search, ask, read documents;
# member: change documents and agents' drafts; admin: keys, dead letters, usage.
ROLES = ("reader", "member", "admin")


@dataclass(frozen=True, slots=True)
class Principal:
    """The holder of an API key. The tenant comes from here and never from a request."""

    tenant: str
    key_id: str
    role: str

    def may(self, role: str) -> bool:
        """Whether this principal has at least `role`. Raises: ValueError for unknown roles."""
        return ROLES.index(self.role) >= ROLES.index(role)
