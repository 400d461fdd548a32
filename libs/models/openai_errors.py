"""What a model server's errors mean: which may be tried again, which name they go by.

Details never hold the server's own words: they may quote the key back.
"""

import json

import httpx2
import openai

from libs.kernel import PermanentError
from libs.models.ports import ModelUnavailableError

# Everything that talking to a model server may raise.
MODEL_ERRORS = (openai.OpenAIError, httpx2.HTTPError, json.JSONDecodeError, TimeoutError)


class RetryableError(ModelUnavailableError):
    """May succeed when tried again, not before `retry_after_s`."""

    def __init__(self, outcome: str, detail: str, retry_after_s: float = 0.0) -> None:
        super().__init__(outcome, detail)
        self.retry_after_s = retry_after_s


def translate(exc: BaseException) -> ModelUnavailableError | PermanentError:
    """Our error for one of `MODEL_ERRORS`."""
    match exc:
        case openai.RateLimitError():
            return RetryableError("rate-limited", "HTTP 429", _retry_after_s(exc.response))
        case openai.APITimeoutError() | TimeoutError() | httpx2.TimeoutException():
            return RetryableError("timeout", "no answer in time")
        case openai.APIStatusError() if exc.status_code >= 500 or exc.status_code in (408, 409):
            detail = f"HTTP {exc.status_code}"
            return RetryableError("unavailable", detail, _retry_after_s(exc.response))
        case openai.APIStatusError():
            return PermanentError(
                "model-refused", f"The model server refused the request: HTTP {exc.status_code}."
            )
        case openai.APIResponseValidationError() | json.JSONDecodeError():
            return RetryableError("malformed", "not the protocol's JSON")
        case httpx2.RemoteProtocolError() | httpx2.ReadError():
            return RetryableError("cut-off", "the connection broke")
        case openai.APIConnectionError() | httpx2.HTTPError():
            return RetryableError("unavailable", "not reachable")
        case _:
            return RetryableError("malformed", type(exc).__name__)


def outcome_in_mid_answer(exc: BaseException) -> str:
    """What one of `MODEL_ERRORS` is called when part of the answer has come."""
    error = translate(exc)
    if isinstance(error, PermanentError) or error.outcome == "unavailable":
        return "cut-off"
    return error.outcome


def _retry_after_s(response: httpx2.Response) -> float:
    try:
        return max(0.0, float(response.headers.get("retry-after", "0")))
    except ValueError:
        return 0.0
