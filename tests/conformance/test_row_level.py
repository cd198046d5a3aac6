"""What DELETE, UPDATE and MERGE must do: a case of each kind, in a soak each case in each way."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[3] / "shared" / "row_level" / "run.py"

CHOSEN = {
    "delta_by_source": (
        "all 3 types of match clauses with conditions",
        "not matched by source update and delete with skipping (partitioned)",
        "NULL keys are not matched by source",
        "a condition that is NULL does not hold",
        "duplicates in the source do not matter to by-source clauses",
        "detect nondeterministic deleteNotMatched condition in merge",
    ),
    "delta_delete": (
        "data and partition columns (partitioned)",
        "rows for which the condition is NULL stay",
        "scalar, in and not in sub-queries over an aggregate",
        "exists: nested",
        "a scalar sub-query of two rows",
        "variant",
        "partition values with special characters",
    ),
    "delta_merge": (
        "inequality between both sides in on",
        "NULL on both sides, <=> (partitioned)",
        "local predicates: matched by a row that a conjunct excludes",
        "two updates, two deletes, four inserts (partitioned)",
        "non-empty condition following empty condition",
        "update whose condition only one match holds",
        "delete and insert: many matches",
        "many target rows for a source row",
        "on with target and source conjuncts (partitioned)",
        "self merge that changes keys",
        "source of a void key",
        "fields at different levels",
        "structs by name: in arrays",
        "partitioned by two columns, keys change",
        "* without a column of the target",
    ),
    "delta_update": (
        "data and partition predicates",
        "all keys become one partition",
        "two columns take each other's values",
        "decimal arithmetic in the condition",
        "a string into a boolean",
        "a scalar sub-query as the value",
        "nested: NULL struct and NULL field",
        "nested: structs go by name at every level",
        "nested: a struct and its inner field",
    ),
}

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not RUN.exists(), reason="the cases of ../shared are not here"),
]


def test_a_case_of_each_kind_is_right_in_one_mode_and_version() -> None:
    names = [f"{file}:{name} delta " for file, chosen in CHOSEN.items() for name in chosen]
    pattern = f"^({'|'.join(map(re.escape, names))})"
    assert right_cases("--spread", "--only", pattern) == len(names)


@pytest.mark.soak
def test_every_case_is_right_in_both_modes_and_versions() -> None:
    assert right_cases() >= 4 * 170


def right_cases(*arguments: str) -> int:
    """Run cases; the number of those that are right, when none is wrong."""
    ran = subprocess.run(
        [sys.executable, str(RUN), "frazil", *arguments],
        capture_output=True,
        text=True,
        timeout=7200,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
    )
    wrong = [line for line in ran.stdout.splitlines() if line.startswith("wrong")]
    assert not wrong, "\n".join(wrong)
    assert ran.returncode == 0, ran.stderr[-2000:]
    said = re.search(r"^(\d+) right, 0 wrong", ran.stdout, re.MULTILINE)
    assert said, ran.stdout[-2000:]
    return int(said[1])
