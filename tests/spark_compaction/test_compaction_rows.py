"""Compaction keeps every row, whatever the version, partitions, deletes and strategy."""

from __future__ import annotations

import itertools
from collections import Counter

import pyarrow.parquet as pq
import pytest
from compacted_tables import Modelled, files_in_metadata, files_on_disk, row

from ci_share import in_circles, only_in_check, only_in_soak, these
from frazil.errors import ConfigurationError, PredicateError, UnsupportedError, ValidationError
from frazil.spark.session import costs
from frazil.storage.parquet.row_sources import row_sources


@pytest.mark.check
@pytest.mark.parametrize(("version", "by"), these([(3, ("part",))], [1, 2, 3], [(), ("part",)]))
def test_small_files_become_one_a_partition(lake, version, by):
    made = Modelled(lake, version=version, by=by)
    made.append(*range(60), files=6)
    result = made.table.compact()
    made.check()
    parts = 2 if by else 1
    before = 6 if not by else len({(n % 6, n % 2) for n in range(60)})
    # Too few files of one partition are left as they are.
    if by and before // 2 < 5:
        assert result.rewritten_data_files_count == 0
        result = made.table.compact(min_input_files=2)
        made.check()
    assert result.rewritten_data_files_count == before
    assert result.added_data_files_count == parts == len(made.data_files())
    assert result.failed_data_files_count == 0
    assert len(result.snapshot_ids) == 1
    assert made.other().current_snapshot.operation == "replace"
    assert made.table.compact().rewritten_data_files_count == 0
    assert "nothing to do" in repr(made.table.compact())


@pytest.mark.parametrize("version", [3, only_in_check(2)])
def test_executors_copy_larger_groups(lake, monkeypatch, version):
    """What is left to Spark's own reader and writer is told by no footer."""
    monkeypatch.setattr(costs, "COPIED_FILES_HERE", 1)
    made = Modelled(lake, version=version, by=("part",))
    made.append(*range(20), files=2)
    assert made.table.compact(rewrite_all=True).added_data_files_count == 2
    made.check()
    held = [row_sources(made.table.io, file["file_path"]) for file in made.data_files()]
    assert [sum(source.count for source in each) for each in held] == [10, 10]


@pytest.mark.check
def test_few_rows_go_to_as_many_files_as_the_target_size_asks_for(lake):
    made = Modelled(lake)
    made.append(*range(80), files=8)
    size = sum(file["file_size_in_bytes"] for file in made.data_files())
    result = made.table.compact(
        rewrite_all=True, target_file_size_bytes=size // 3, min_file_size_bytes=1
    )
    assert result.rewritten_data_files_count == 8
    assert len(made.data_files()) == result.added_data_files_count > 1
    made.check()


@pytest.mark.check
def test_an_empty_table_and_a_table_of_good_files_stay_as_they_are(lake):
    made = Modelled(lake)
    assert made.table.compact().snapshot_ids == ()
    made.append(*range(10), files=5)
    size = sum(file["file_size_in_bytes"] for file in made.data_files())
    result = made.table.compact(target_file_size_bytes=size // 5, min_file_size_bytes=1)
    assert result.rewritten_data_files_count == 0


@pytest.mark.check
@pytest.mark.parametrize("version", [2, only_in_soak(3)])
def test_deleted_rows_go_and_with_them_what_deleted_them(lake, version):
    made = Modelled(lake, version=version, properties={"write.delete.mode": "merge-on-read"})
    made.append(*range(60), files=5)
    made.delete("id % 3 = 0", lambda r: r[0] % 3 == 0)
    made.delete_by_keys({"name": ["n1", None]})
    made.check()
    result = made.table.compact(remove_dangling_deletes=True)
    made.check()
    assert result.rewritten_data_files_count == 5
    assert result.removed_delete_files_count == 6
    assert made.delete_files() == []


@pytest.mark.check
def test_a_good_file_is_rewritten_for_the_rows_that_are_deleted_of_it(lake):
    """Equality deletes count by the share of their keys that a file's rows are."""
    made = Modelled(lake)
    made.append(*range(100))
    made.append(*range(1000, 1100))
    [one, _] = [file["file_size_in_bytes"] for file in made.data_files()]
    sizes = {"target_file_size_bytes": one, "min_file_size_bytes": 1}
    made.delete_by_keys({"id": list(range(1000, 1020))})
    assert made.table.compact(**sizes).rewritten_data_files_count == 0
    made.delete_by_keys({"id": list(range(1020, 1040))})
    result = made.table.compact(**sizes)
    assert result.rewritten_data_files_count == 1
    made.check()
    made.delete_by_keys({"id": [3]})
    assert made.table.compact(**sizes, delete_file_threshold=1).rewritten_data_files_count == 1
    made.check()


@pytest.mark.check
def test_a_condition_chooses_partitions(lake):
    made = Modelled(lake, by=("part",))
    made.append(*range(60), files=3)
    before = {file["file_path"] for file in made.data_files() if file["partition"]["part"] == 1}
    made.table.compact("part = 0", min_input_files=2)
    made.check()
    after = {file["file_path"] for file in made.data_files() if file["partition"]["part"] == 1}
    assert after == before
    with pytest.raises(PredicateError, match="chooses no files"):
        made.table.compact("rand() < 0.5")


@pytest.mark.check
def test_files_of_an_older_spec_come_out_in_the_current_one(lake):
    made = Modelled(lake)
    made.append(*range(40), files=5)
    with made.table.update_spec() as update:
        update.add_field("part")
    made.append(*range(40, 80), files=3)
    result = made.table.compact(min_input_files=2)
    made.check()
    found = made.data_files()
    assert {file["spec_id"] for file in found} == {1}
    assert result.added_data_files_count == len(found) == 4
    made.table.compact(rewrite_all=True, output_spec_id=0)
    made.check()
    assert {file["spec_id"] for file in made.data_files()} == {0}


@pytest.mark.check
def test_row_ids_and_sequence_numbers_are_kept(lake):
    made = Modelled(lake, version=3)
    made.append(*range(30), files=5)
    made.table.update({"v": "v + 1"}, "id in (3, 4)")
    made.forget(lambda r: r[0] in (3, 4))
    made.rows.update([(*row(n)[:3], row(n)[3] + 1) for n in (3, 4)])
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    before = sorted(made.table.scan(columns=columns).to_df().collect())
    made.table.compact()
    made.check()
    assert sorted(made.other().scan(columns=columns).to_df().collect()) == before
    made.table.compact(strategy="sort", sort_order="v desc", rewrite_all=True)
    assert sorted(made.other().scan(columns=columns).to_df().collect()) == before


@pytest.mark.check
def test_a_table_that_came_to_version_3_gets_row_ids_at_the_compaction(lake):
    made = Modelled(lake, version=2)
    made.append(*range(20), files=5)
    made.table.upgrade(3)
    made.table.compact()
    made.check()
    ids = [r[0] for r in made.other().scan(columns=["_row_id"]).to_df().collect()]
    assert sorted(ids) == list(range(20))


@pytest.mark.check
@pytest.mark.parametrize(
    "own", [True, only_in_soak(False)], ids=["the table's order", "another order"]
)
def test_sorted_files_follow_each_other(lake, own):
    made = Modelled(lake, by=() if own else ("part",))
    made.append(*range(200), files=5)
    if own:
        made.table.replace_sort_order("v desc")
    size = sum(file["file_size_in_bytes"] for file in made.data_files())
    order = None if own else "v desc, id"
    result = made.table.compact(
        strategy="sort",
        sort_order=order,
        rewrite_all=True,
        target_file_size_bytes=size // 3,
    )
    made.check()
    assert result.added_data_files_count > 2
    files = made.data_files()
    assert {file["sort_order_id"] for file in files} == ({1} if own else {0})
    by_partition: dict[object, list[tuple[float, float]]] = {}
    for file in files:
        values = pq.read_table(file["file_path"].removeprefix("file://"))["v"].to_pylist()
        assert values == sorted(values, reverse=True)
        place = None if own else file["partition"]["part"]
        by_partition.setdefault(place, []).append((min(values), max(values)))
    for ranges in by_partition.values():
        for (_, highest), (lowest, _) in itertools.pairwise(sorted(ranges)):
            assert highest < lowest


@pytest.mark.parametrize(
    ("order", "key"),
    [
        only_in_soak("name nulls last, id desc", lambda r: (r[2] is None, r[2] or "", -r[0])),
        ("name desc nulls first, id", lambda r: (r[2] is not None, -ord((r[2] or "0")[-1]), r[0])),
        only_in_soak("v desc", lambda r: -r[3]),
        # Of two values no three tasks can be made: the second key counts.
        only_in_soak("part, id", lambda r: (r[1], r[0])),
    ],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_files_in_a_row_are_in_the_order_of_all_rows(lake, order, key):
    made = Modelled(lake)
    made.append(*range(500), files=5)
    size = sum(file["file_size_in_bytes"] for file in made.data_files())
    made.table.compact(strategy="sort", sort_order=order, target_file_size_bytes=size // 3)
    made.check()
    names = sorted(file["file_path"].removeprefix("file://") for file in made.data_files())
    assert len(names) > 2
    found = [tuple(r.values()) for name in names for r in pq.read_table(name).to_pylist()]
    assert [r[0] for r in found] == [r[0] for r in sorted(made.rows, key=key)]


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["zorder", "hilbert"])
def test_files_along_a_curve_are_narrow_in_both_columns(lake, spark, strategy):
    made = Modelled(lake)
    rows = [(n, (n * 7919) % 1009, f"user-{(n * 104729) % 997:04}", 0.0) for n in range(4000)]
    ddl = "id bigint, part int, name string, v double"
    for part in range(5):
        made.table.append(spark.createDataFrame(rows[part::5], ddl).coalesce(1))
    made.rows.update(rows)
    size = sum(file["file_size_in_bytes"] for file in made.data_files())
    result = made.table.compact(
        strategy=strategy, columns=["part", "name"], target_file_size_bytes=size // 16
    )
    made.check()
    assert result.added_data_files_count >= 8
    shares = []
    for file in made.data_files():
        table = pq.read_table(file["file_path"].removeprefix("file://"))
        parts = table["part"].to_pylist()
        names = [int(name[5:]) for name in table["name"].to_pylist()]
        width, height = max(parts) - min(parts) + 1, max(names) - min(names) + 1
        shares.append(width / 1009 * height / 997)
    # Files of rows in any order would all have the share 1.
    assert sum(shares) / len(shares) < 0.4


def test_what_cannot_be_meant_is_refused_before_anything_is_written(lake):
    made = Modelled(lake)
    made.append(*range(10), files=5)
    before = files_on_disk(made.table)
    table = made.table
    for error, arguments in [
        (ValidationError, {"strategy": "random"}),
        (ValidationError, {"strategy": "sort"}),
        (ValidationError, {"strategy": "sort", "sort_order": "nowhere"}),
        (ValidationError, {"strategy": "binpack", "sort_order": "id"}),
        (ValidationError, {"strategy": "zorder"}),
        (ValidationError, {"strategy": "zorder", "columns": ["id", "id"]}),
        (ValidationError, {"strategy": "hilbert", "columns": ["nowhere"]}),
        (ConfigurationError, {"options": {"min-input-file": "2"}}),
        (ConfigurationError, {"min_input_file": 2}),
        (ConfigurationError, {"min_input_files": 0}),
        (ConfigurationError, {"min_input_files": 2, "options": {"min-input-files": "2"}}),
        (ConfigurationError, {"target_file_size_bytes": 10, "min_file_size_bytes": 20}),
        (ConfigurationError, {"rewrite_job_order": "random"}),
        (ConfigurationError, {"max_output_size": 0}),
        (UnsupportedError, {"shuffle_partitions_per_file": 2}),
        (ValidationError, {"snapshot_properties": {"operation": "replace"}}),
    ]:
        with pytest.raises(error):
            table.compact(**arguments)
    assert files_on_disk(table) == before == files_in_metadata(table)


@pytest.mark.check
def test_a_branch_is_compacted_and_main_stays(lake):
    made = Modelled(lake)
    made.append(*range(20), files=5)
    made.table.create_branch("b")
    main = made.table.current_snapshot.snapshot_id
    made.table.compact(branch="b")
    assert made.other().current_snapshot.snapshot_id == main
    made.check(ref="b")
    assert len(made.other().inspect.data_files(ref="b")) == 1


@pytest.mark.check
def test_groups_are_ordered_and_cut_as_asked(lake):
    made = Modelled(lake, by=("part",))
    made.append(*range(0, 20, 2), files=2)
    made.append(*range(1, 80, 2), files=4)
    seen = []
    made.table.compact(
        min_input_files=2,
        rewrite_job_order="files-asc",
        max_concurrent_file_group_rewrites=1,
        on_progress=lambda p: seen.append((p.stage, p.files)),
    )
    made.check()
    assert [files for stage, files in seen if stage == "rewriting"] == [0, 2, 6]
    assert seen[-1][0] == "done"
    made.append(*range(1, 80, 2), files=4)
    result = made.table.compact(rewrite_all=True, max_files_to_rewrite=3)
    made.check()
    assert result.rewritten_data_files_count == 3


@pytest.mark.check
@pytest.mark.parametrize(
    ("arguments", "version", "by"),
    in_circles(
        [
            ({}, 3, ()),
            only_in_soak({"strategy": "sort", "sort_order": "v desc"}, 2, ("part",)),
            only_in_soak({"strategy": "zorder", "columns": ["id", "part"]}, 2, ()),
        ],
        test=1,
    ),
    ids=str,
)
def test_a_file_whose_row_groups_several_tasks_write_is_one_file(lake, arguments, version, by):
    made = Modelled(
        lake,
        version=version,
        by=by,
        properties={
            "write.parquet.row-group-size-bytes": "6000",
            "write.parquet.bloom-filter-enabled.column.id": "true",
            "write.parquet.bloom-filter-max-bytes": "1024",
            "write.delete.mode": "merge-on-read",
        },
    )
    made.append(*range(600), files=5)
    made.delete("id % 10 = 3", lambda r: r[0] % 10 == 3)
    result = made.table.compact(rewrite_all=True, **arguments)
    parts = 2 if by else 1
    assert result.added_data_files_count == parts
    made.check()
    for file in made.data_files():
        stored = pq.ParquetFile(file["file_path"].removeprefix("file://"))
        assert stored.metadata.num_row_groups > 1
        assert len(file["split_offsets"]) == stored.metadata.num_row_groups
        values = stored.read()["v"].to_pylist()
        if "sort_order" in arguments:
            assert values == sorted(values, reverse=True)
    assert made.other().scan("id = 555").count() == 1
    assert files_on_disk(made.table) == files_in_metadata(made.table)


def paths(made):
    """The data files in the order in which a scan has them."""
    return made.other().scan().plan().files["file_path"].to_list()


@pytest.mark.check
def test_rows_that_nothing_changes_are_copied(lake):
    """Files that lack a column are not; a column's own name does not matter."""
    made = Modelled(lake, by=("part",))
    made.append(*range(90), files=3)
    with made.table.update_schema() as change:
        change.rename_column("name", "called")
        change.delete_column("v")
    made.rows = type(made.rows)({r[:3]: n for r, n in made.rows.items()})
    ids = [pq.read_table(path.removeprefix("file://"))["id"].to_pylist() for path in paths(made)]
    made.table.compact(rewrite_all=True)
    in_order = [each for part in (0, 1) for run in ids for each in run if each % 2 == part]
    new = [pq.read_table(path.removeprefix("file://"))["id"].to_pylist() for path in paths(made)]
    assert sorted(new) == sorted([in_order[:45], in_order[45:]])
    made.check()
    assert rows_by_writer(made) == {"parquet-cpp-arrow": 90}
    for file in made.data_files():
        stored = pq.read_metadata(file["file_path"].removeprefix("file://"))
        assert stored.schema.column(2).name == "called"
        assert stored.row_group(0).column(0).has_offset_index
    with made.table.update_schema() as change:
        change.add_column("more", "int")
    made.rows = type(made.rows)({(*r, None): n for r, n in made.rows.items()})
    made.table.compact(rewrite_all=True)
    made.check()
    assert rows_by_writer(made) == {"parquet-mr": 90}
    assert files_on_disk(made.table) == files_in_metadata(made.table)


def jobs_so_far(spark):
    """The numbers of this session's jobs, of which Spark forgets the oldest."""
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup())


def failed_tasks(spark, before):
    """How many tasks have failed of the jobs that were not there before."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in jobs_so_far(spark) - before]
    assert jobs
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    told = [tracker.getStageInfo(stage) for stage in stages]
    return sum(stage.numFailedTasks for stage in told if stage is not None)


def rows_by_writer(made):
    """How many rows of data files each writer wrote."""
    rows = Counter()
    for file in made.data_files():
        stored = pq.read_metadata(file["file_path"].removeprefix("file://"))
        rows[stored.created_by.split()[0]] += stored.num_rows
    return rows


@pytest.mark.check
@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_no_task_fails_where_only_some_files_of_a_group_can_be_copied(lake, spark, version):
    """Files from before a column came lack it; those from after it are as new ones would be."""
    made = Modelled(lake, version=version)
    made.append(*range(2000), files=2)
    with made.table.update_schema() as change:
        change.add_column("more", "int")
    made.rows = type(made.rows)({(*r, None): n for r, n in made.rows.items()})
    late = spark.range(5000, 9000, 1, 1)
    for part in range(2):
        made.table.append(
            late.where(f"id % 2 = {part}").selectExpr(
                "id", "int(id % 2) part", "'late' name", "id / 4d v", "7 more"
            )
        )
    made.rows.update((n, n % 2, "late", n / 4, 7) for n in range(5000, 9000))
    columns = ["id", "_row_id", "_last_updated_sequence_number"] if version == 3 else ["id"]
    before = sorted(made.table.scan(columns=columns).to_df().collect())
    sizes = [file["file_size_in_bytes"] for file in made.data_files()]
    jobs = jobs_so_far(spark)
    done = made.table.compact(rewrite_all=True, target_file_size_bytes=sum(sizes) // 2)
    assert failed_tasks(spark, jobs) == 0
    assert done.rewritten_data_files_count == 4
    made.check()
    assert sorted(made.other().scan(columns=columns).to_df().collect()) == before
    # Files of one task go one way.
    rows = rows_by_writer(made)
    assert rows.total() == 6000
    assert rows["parquet-mr"] >= 2000
    assert rows["parquet-cpp-arrow"] >= 2000
    assert files_on_disk(made.table) == files_in_metadata(made.table)


NAN = float("nan")
FLOATS_DDL = (
    "id bigint, mixed double, nan double, plain float, s struct<x: double>, l array<double>"
)
FLOATS = [
    (0, 0.0, NAN, 7.5, (NAN,), [NAN]),
    (1, -0.0, NAN, -0.0, None, None),
    (2, NAN, NAN, 0.0, (7.5,), [1.0, None]),
    (3, 7.5, NAN, None, (None,), []),
    (4, None, NAN, 1.0, (0.0,), [2.0]),
    (5, float("inf"), NAN, -2.0, (1.0,), [3.0]),
]


def test_entries_of_copied_files_state_counts_and_bounds_of_floats(lake, spark):
    properties = {
        "write.metadata.metrics.column.nan": "none",
        "write.metadata.metrics.column.s.x": "counts",
    }
    table = lake.create_table("db.t", FLOATS_DDL, format_version=2, properties=properties)
    table.append(spark.createDataFrame(FLOATS, FLOATS_DDL).coalesce(1))
    table.compact(rewrite_all=True)
    [file] = table.refresh().files().collect()
    footer = pq.read_metadata(file.file_path.removeprefix("file://"))
    columns = [(footer.schema.column(n).path, n) for n in range(footer.num_columns)]
    # Statistics that leave NaN out would hide its rows from filters.
    without = {path for path, n in columns if not footer.row_group(0).column(n).is_stats_set}
    assert without == {"mixed", "nan", "plain", "s.x", "l.list.element"}
    told = {name: getattr(file.readable_metrics, name).asDict() for name in ("mixed", "plain")}
    told["s.x"] = file.readable_metrics["s.x"].asDict()
    names = ("value_count", "null_value_count", "nan_value_count", "lower_bound", "upper_bound")
    # Java's runtime takes bounds for all values, NaN too; a zero stands for both of them.
    assert {column: tuple(each[name] for name in names) for column, each in told.items()} == {
        "mixed": (6, 1, 1, None, None),
        "plain": (6, 1, 0, -2.0, 7.5),
        "s.x": (6, 2, 1, None, None),
    }
    assert not {3, 7} & {*(file.lower_bounds or {}), *(file.upper_bounds or {})}
    assert 3 not in {*file.value_counts, *file.nan_value_counts, *file.null_value_counts}
    assert [v for v in file.readable_metrics.nan if v is not None] == []
