"""The REST catalog protocol's OpenAPI file, which lies beside this checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "protocol" / "rest-catalog-open-api.yaml"


def open_api_text() -> str:
    """The file as its project publishes it; without it the test is skipped.

    FRAZIL_REST_SPECIFICATION names another place. Where FRAZIL_REQUIRE_SPECIFICATION is set, as in
    CI, a missing file is a failure.
    """
    place = Path(os.environ.get("FRAZIL_REST_SPECIFICATION") or _BESIDE)
    if place.is_file():
        return place.read_text()
    reason = f"the protocol's OpenAPI file is not at {place}: FRAZIL_REST_SPECIFICATION names it"
    if os.environ.get("FRAZIL_REQUIRE_SPECIFICATION"):
        pytest.fail(reason)
    pytest.skip(reason)
