"""Hooks of schemathesis: requests that name what exists, and a check of every error."""

import json
import os
from typing import Any

import schemathesis

KNOWN = "SLUICE_TEST_KNOWN_IDS"


@schemathesis.hook
def map_path_parameters(_context: Any, path_parameters: Any) -> Any:
    known = json.loads(os.environ[KNOWN])
    return {
        name: known[name] if name in known and len(str(value)) % 2 else value
        for name, value in (path_parameters or {}).items()
    }


@schemathesis.check
def error_is_a_problem(_context: Any, response: Any, _case: Any) -> None:
    """RFC 9457, with a sentence that says what to do."""
    if response.status_code < 400:
        return
    assert response.headers["content-type"] == ["application/problem+json"]
    problem = response.json()
    assert problem["status"] == response.status_code
    assert problem["type"].startswith("urn:sluice:problem:")
    assert problem["detail"].endswith((".", ")")), problem["detail"]
    assert len(problem["detail"].split()) > 4, problem["detail"]
