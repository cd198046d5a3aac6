"""Statements whose rows were recorded from the Java runtime, by `lake.sql` and by `spark.sql`.

`interop/record_sql_cases.py` records them.
"""

import pyspark
import pytest
from sql_cases import FILES, KINDS, Player, failures_of, is_recorded, state_of

from ci_share import in_circles, only_in_soak

_IN_CI = (
    "errors.test",
    "inserts.test",
    "types.test",
)
"""Files that take few seconds; a soak runs all of them."""


def test_each_file_is_recorded():
    """Also those that no case of a circle runs; else none would tell that rows are missing."""
    assert [name for name in (*FILES, KINDS) if not is_recorded(name)] == []


@pytest.mark.parametrize(
    "name", in_circles([name if name in _IN_CI else only_in_soak(name) for name in FILES], test=1)
)
def test_by_the_lake(lake, no_leftovers, name):
    _skip_without_variants(name)
    player = Player(lambda text, args: lake.sql(text, args), state=lambda: state_of(lake))
    assert failures_of(name, player) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", FILES)
def test_by_an_attached_session(lake, spark, no_leftovers, name):
    _skip_without_variants(name)
    lake.attach(name="lake")
    try:
        spark.sql("USE lake")
        player = Player(
            lambda text, args: spark.sql(text, args), tells=False, state=lambda: state_of(lake)
        )
        assert failures_of(name, player) == []
    finally:
        spark.sql("USE spark_catalog.default")
        lake.detach()


def _skip_without_variants(name):
    if name == "types.test" and pyspark.__version__ < "4.1":
        pytest.skip("this Spark reads no variants")
