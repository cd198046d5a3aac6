"""What is measured of tables of millions of files is right: the same steps on a small one."""

import pytest
from bench.slopes_large import KINDS
from bench.slopes_large_data import MANY_ROWS, PARTITIONS, write_large_table

import frazil
from frazil.spark.session import costs

MADE = PARTITIONS
FILES = 2 * MADE


@pytest.fixture(scope="module")
def large(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    made = write_large_table(folder / "table", files=FILES, made=MADE)
    return frazil.open_table(made, spark=spark)


def test_each_file_has_its_name_and_values(large):
    """A partition of a file, under two names; a manifest is as heavy as one of real files."""
    files = large.inspect.files()
    assert files["file_path"].n_unique() == FILES
    assert files["partition"].struct.field("part").value_counts()["count"].unique().to_list() == [2]
    assert files["record_count"].sum() == FILES * 99_500
    assert (files["record_count"] > MANY_ROWS).sum() == FILES * 49 // 100
    first = files.row(0, named=True)["readable_metrics"]
    assert list(first) == ["id", "name", "part", "score"]
    assert (first["id"]["lower_bound"], first["id"]["upper_bound"]) == (0, 9)
    assert all(values["value_count"] == 50_000 for values in first.values())
    manifests = large.inspect.manifests()
    assert 50 * FILES < manifests["length"].sum() < 100 * FILES


@pytest.mark.check
@pytest.mark.parametrize("by", ["driver", "executors"])
def test_both_ways_give_the_right_answers(large, monkeypatch, by):
    if by == "executors":
        for limit in ("DECODED_FILES", "PLANNED_BYTES", "PRUNING_CORES"):
            monkeypatch.setattr(costs, limit, 0)
    asked = [kind for kind in KINDS if kind.answer is not None]
    assert len(asked) > len(KINDS) // 2
    for kind in asked:
        large.io.caches.clear()
        kind.check(kind.step(large), FILES)


def test_a_wrong_answer_is_told():
    [plans] = [kind for kind in KINDS if kind.name.startswith("plan all")]
    with pytest.raises(ValueError, match="7, not 8"):
        plans.check(7, 8)
