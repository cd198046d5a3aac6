"""What happens where a part that tests need is not there: a skip, or a failure where all is due."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def skip_without(what: str) -> NoReturn:
    """Skip the test and say why; fail it where FRAZIL_REQUIRE_ALL is set, as CI does."""
    if os.environ.get("FRAZIL_REQUIRE_ALL"):
        pytest.fail(f"FRAZIL_REQUIRE_ALL is set, but {what}")
    pytest.skip(what)
