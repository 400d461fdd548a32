"""Whether a browser's request was made by a page of this server."""

from collections.abc import Mapping
from urllib.parse import urlsplit

_OURS = frozenset({"same-origin", "none"})  # none: the person asked, no page did


def is_own(headers: Mapping[str, str]) -> bool:
    """Judged by Sec-Fetch-Site where the browser sends it, else by Origin and Host.

    Another port of the same machine is another origin. Without either header: no. The scheme is
    not compared: behind a proxy that ends TLS, only the browser knows it.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in _OURS
    origin = headers.get("origin", "")
    try:
        host = urlsplit(origin).netloc
    except ValueError:
        return False
    return host != "" and host.lower() == headers.get("host", "").lower()
