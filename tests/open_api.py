"""The REST catalog protocol's OpenAPI file, which lies beside this checkout."""

from __future__ import annotations

import os
from pathlib import Path

from absent import skip_without

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "protocol" / "rest-catalog-open-api.yaml"


def open_api_text() -> str:
    """The file as its project publishes it; FRAZIL_REST_SPECIFICATION names another place."""
    place = Path(os.environ.get("FRAZIL_REST_SPECIFICATION") or _BESIDE)
    if not place.is_file():
        skip_without(
            f"the protocol's OpenAPI file is not at {place}: FRAZIL_REST_SPECIFICATION names it"
        )
    return place.read_text()
