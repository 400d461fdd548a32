"""The error classes that decide what happens to a message or a request."""


class SluiceError(Exception):
    """Base of every error that Sluice raises on purpose."""


class TransientError(SluiceError):
    """The same call may succeed later: back off and retry.

    Args:
        missing: Short name of what is not there, as readiness shows it, e.g. `disk`.
    """

    def __init__(self, message: str = "", *, missing: str = "") -> None:
        super().__init__(message)
        self.missing = missing


class DiskError(TransientError):
    """The disk takes no writes now. Nobody's data is at fault: it works again when there is room.

    Args:
        full: There is no room; otherwise the place cannot be written (read-only, say, or broken).
    """

    def __init__(self, message: str = "", *, full: bool = True) -> None:
        super().__init__(message, missing="disk")
        self.full = full


class PermanentError(SluiceError):
    """Trying again cannot help; the work ends in a named failure at once.

    Args:
        reason: Short kebab-case code that is stored, shown and documented, e.g. `encrypted`.
        detail: One sentence for a person: what is wrong and what to do about it.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class NotFoundError(SluiceError):
    """The id does not exist for this tenant (another tenant's id looks the same)."""


class ConflictError(SluiceError):
    """The request contradicts the current state."""
