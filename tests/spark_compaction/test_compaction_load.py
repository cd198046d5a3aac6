"""How much is deleted of each file is the same from runs as from single pairs."""

import numpy as np
import polars as pl
import pytest

from frazil.format.predicates.expressions import AlwaysTrue
from frazil.format.schema import Schema
from frazil.planning.delete_load import delete_load
from frazil.planning.deletes.index import DeleteIndex
from frazil.planning.deletes.runs import Runs
from frazil.planning.scan_plan import ScanPlan


def plan_of(index, files, deletes):
    return ScanPlan(
        snapshot_id=1,
        schema=Schema(()),
        where=AlwaysTrue(),
        residual=AlwaysTrue(),
        files=files,
        deletes=deletes,
        delete_index=index,
    )


@pytest.mark.parametrize("seed", range(5))
def test_runs_and_pairs_say_the_same(seed):
    random = np.random.default_rng(seed)
    files = pl.DataFrame({"ordinal": np.arange(40), "record_count": random.integers(0, 100, 40)})
    deletes = pl.DataFrame(
        {
            "delete": np.arange(30),
            "record_count": random.integers(1, 50, 30),
            "content": np.full(30, 2),
            "referenced_data_file": pl.Series([None] * 30, dtype=pl.String),
        }
    )
    start = random.integers(0, 30, 20)
    runs = Runs(np.arange(20), random.permutation(40), start, start + random.integers(1, 10, 20))
    singles = DeleteIndex.of_pairs(random.integers(0, 40, 10), np.arange(20, 30))
    index = singles.beside(DeleteIndex.of_runs(runs))
    pairs = index.expanded()
    expanded = DeleteIndex.of_pairs(pairs["ordinal"].to_numpy(), pairs["delete"].to_numpy())
    found, expected = (
        delete_load(plan_of(each, files, deletes)).sort("ordinal") for each in (index, expanded)
    )
    assert found["ordinal"].to_list() == expected["ordinal"].to_list()
    assert found["delete_files"].to_list() == expected["delete_files"].to_list()
    assert found["deleted_rows"].to_list() == pytest.approx(expected["deleted_rows"].to_list())
