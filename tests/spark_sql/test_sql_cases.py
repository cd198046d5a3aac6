"""Statements of SQL, and what must come of them by Spark's and Iceberg's documentation."""

import pytest
from sql_cases import CASES, Player, failures_of, state_of

from ci_share import in_circles, only_in_soak

# CI has the functions in `test_sql_functions`.
NAMES = sorted(path.name for path in CASES.glob("*.test") if path.stem != "functions")


@pytest.mark.parametrize(
    "name", [*in_circles(NAMES, test=1, check=1), only_in_soak("functions.test")]
)
def test_statements_of_a_file(lake, spark, name):
    player = Player(lambda text, args: lake.sql(text, args), state=lambda: state_of(lake))
    assert failures_of(name, player, CASES) == []
    for view in spark.catalog.listTables():
        assert not view.name.startswith("frazil_")
        spark.catalog.dropTempView(view.name)
