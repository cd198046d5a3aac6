"""Statements of SQL, and what must come of them by Spark's and Iceberg's documentation."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from sql_cases import CASES, as_text, cases_of

from frazil.errors import FrazilError


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("*.test")))
def test_statements_of_a_file(lake, spark, name):
    for case in cases_of(name):
        where = f"{name}:{case.line}: {case.statement}"
        if case.kind == "error":
            with pytest.raises((FrazilError, PySparkException)) as raised:
                lake.sql(case.statement).collect()
            kind, _, words = case.said.partition(" ")
            assert type(raised.value).__name__ == kind, where
            assert words in str(raised.value), (where, str(raised.value))
            assert "frazil_" not in str(raised.value).replace("_frazil_", ""), where
            continue
        rows = as_text(lake.sql(case.statement).collect())
        if case.kind == "rows":
            expected = list(case.rows)
            if case.said != "ordered":
                rows, expected = sorted(rows), sorted(expected)
            assert rows == expected, where
    for view in spark.catalog.listTables():
        assert not view.name.startswith("frazil_")
        spark.catalog.dropTempView(view.name)
