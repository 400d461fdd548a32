"""Whether there is a Tika server at TIKA_URL."""

import httpx

from libs.kernel import TransientError

MISSING = "tika"  # as readiness names the server
_TIMEOUT_S = 5.0
_VERSIONS = ("Apache Tika 2.", "Apache Tika 3.")


async def check_tika(url: str) -> None:
    """Raises: TransientError, whose text says what to do."""
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=_TIMEOUT_S) as client:
            answer = await client.get(f"{url.rstrip('/')}/version")
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        text = f"TIKA_URL={url} does not answer: {type(exc).__name__} {exc}"
        raise TransientError(text, missing=MISSING) from exc
    if answer.status_code != 200 or not answer.text.startswith(_VERSIONS):
        raise TransientError(
            f"TIKA_URL={url} is no Tika server of version 2 or 3: at /version it says "
            f"{answer.text[:60]!r} (HTTP {answer.status_code})",
            missing=MISSING,
        )
