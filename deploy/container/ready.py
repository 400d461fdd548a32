"""Health check of a container: exits with 0 when the service says that it is ready.

What is missing goes to the check's output, which `docker inspect` shows.
"""

import http.client
import os
import sys

TIMEOUT_S = 4.0


def main() -> int:
    connection = http.client.HTTPConnection(
        "127.0.0.1", int(os.environ["SLUICE_HEALTH_PORT"]), timeout=TIMEOUT_S
    )
    try:
        connection.request("GET", "/ready")
        answer = connection.getresponse()
        sys.stdout.write(answer.read(10_000).decode(errors="replace"))
    except (OSError, http.client.HTTPException) as exc:
        sys.stdout.write(f"no answer: {exc}")
        return 1
    return 0 if answer.status == http.client.OK else 1


if __name__ == "__main__":
    sys.exit(main())
