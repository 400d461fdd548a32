"""How a command ends when it cannot do its work."""

from enum import IntEnum

from libs.observability import redacted


class ExitCode(IntEnum):
    """What scripts can tell apart."""

    OK = 0
    FAILED = 1  # the work was done and (part of) it failed
    USAGE = 2
    UNREACHABLE = 3  # no platform there, or not ready
    REFUSED = 4  # missing, wrong or insufficient API key
    DECLINED = 5  # `ask`: the documents do not answer the question


class CliError(Exception):
    """A message for the person at the terminal, and the exit code."""

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(redacted(message))
        self.code = code


class AwayError(CliError):
    """No platform there, or not able to answer now: the same request may work in a moment.

    Args:
        answered: Whether something did answer, so that there is a platform to wait for.
    """

    def __init__(self, message: str, *, answered: bool) -> None:
        super().__init__(message, ExitCode.UNREACHABLE)
        self.answered = answered
