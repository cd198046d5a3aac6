"""What delete, update, merge and upsert do, case by case, in both modes and versions in turn."""

from __future__ import annotations

from typing import Any

import cases_of_evolution
import cases_of_keys
import cases_of_values
import pytest
from row_case import Case, as_multiset, rows_of, session_with, ways_of

from frazil.spark.abilities import HAS_TIME_TYPE
from frazil.spark.lake import Lake

pytestmark = pytest.mark.check

ALL = (*cases_of_keys.CASES, *cases_of_values.CASES, *cases_of_evolution.CASES)


@pytest.mark.parametrize(
    ("case", "mode", "version"),
    [
        pytest.param(
            *way, id=f"{way[0].name}, {way[1]} v{way[2]}", marks=[] if in_ci else pytest.mark.soak
        )
        for *way, in_ci in ways_of(ALL)
    ],
)
def test_case(rows_lake: Lake, spark: Any, case: Case, mode: str, version: int) -> None:
    if "spark.sql.timeType.enabled" in case.settings and not HAS_TIME_TYPE:
        pytest.skip("this Spark has no type of times")
    with session_with(spark, case.settings):
        bench = case.made(rows_lake, mode, version)
        if case.refused is None:
            case.do(bench)
            assert case.after is not None
            assert rows_of(bench.table, case.select) == as_multiset(case.after)
            return
        metadata = bench.table.metadata_location
        with pytest.raises(case.refused, match=case.says):
            case.do(bench)
        assert bench.table.refresh().metadata_location == metadata
