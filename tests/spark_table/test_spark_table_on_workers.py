"""Lakes, tables and scans stay on the driver; what they are made of says so."""

import copy
import pickle

import pytest
from pyspark.sql import functions as F

from frazil.errors import UnsupportedError

HELD = {
    "Lake": lambda lake, table: lake,
    "Table": lambda lake, table: table,
    "Scan": lambda lake, table: table.scan(),
    "TableTransaction": lambda lake, table: table.transaction(),
    "files": lambda lake, table: table.files,
    "maintenance": lambda lake, table: table.maintenance,
    "dataframes": lambda lake, table: table.inspect.dataframes,
}


@pytest.fixture(params=HELD)
def held(request, lake, table):
    """One of the objects that a user holds."""
    return HELD[request.param](lake, table)


@pytest.mark.parametrize("how", [copy.deepcopy, pickle.dumps])
def test_copying_says_that_they_live_on_the_driver(held, how):
    with pytest.raises(UnsupportedError, match=r"lives on the driver.*cannot be pickled"):
        how(held)


def test_a_shallow_copy_is_of_this_process_too(table):
    assert copy.copy(table).refresh().name == table.name


@pytest.mark.parametrize("held", [*HELD][:4], indirect=True)
def test_a_udf_that_holds_one_says_so(spark, held):
    text = F.udf(lambda _: str(held))
    with pytest.raises(Exception, match=r"UnsupportedError: a .* lives on the driver"):
        spark.range(1).select(text("id")).collect()
