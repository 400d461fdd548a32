"""Asks the gateway whether a document could be uploaded and a question answered now."""

import http.client
import json


def missing_parts(port: int, timeout_s: float = 2.0) -> list[str]:
    """What `/ready` says is missing; empty when the stack is ready."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("GET", "/ready", headers={"Host": f"127.0.0.1:{port}"})
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        return ["gateway"]
    finally:
        connection.close()
    if response.status == http.client.OK:
        return []
    try:
        return [str(name) for name in json.loads(body)["missing"]] or ["gateway"]
    except (ValueError, KeyError, TypeError):
        return [f"gateway (answered {response.status})"]
