"""The real tables of other engines, read through the public path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from run import FIXTURES, check, expectations

from ci_share import one_in

NO_DATA_FILES = {
    # The data of these tables is not in the fixtures: reading them must be a typed error.
    "duckdb_generated_bounds",
    "duckdb_my_table",
}
NAMES = (
    [json.loads(line)["table"] for line in (FIXTURES / "EXPECTED.jsonl").read_text().splitlines()]
    if (FIXTURES / "EXPECTED.jsonl").is_file()
    else []
)


@pytest.mark.check
@pytest.mark.parametrize("name", one_in(2, NAMES))
def test_fixture(spark: Any, fixtures_dir: Path, name: str) -> None:
    (case,) = [case for case in expectations(fixtures_dir) if case.table == name]
    outcome = check(spark, fixtures_dir, case)
    assert outcome.verdict == ("refused" if name in NO_DATA_FILES else "right"), outcome.detail
