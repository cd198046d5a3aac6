"""What commands and reads find by floats is what Spark finds in rows in memory.

Parquet's filters miss rows that Spark would keep: a dictionary of -0.0 holds no 0.0, and a range
may leave NaN out. Nothing is skipped by them, whoever the condition comes from.
"""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from ci_share import these

pytestmark = pytest.mark.check

MODES = ("copy-on-write", "merge-on-read")
CONDITIONS = (
    "{t}k = 0",
    "{t}s.x > 5",
    "{t}k in (0.0D, 5.0D)",
    "{t}f = double('NaN')",
    "{t}s.x = 0",
    "{t}k > 2 + 3",
    "{t}f <=> 0",
    "{t}k >= 0 and {t}k < 1 and upper('a') = 'A'",
    "not ({t}f <= 5)",
)
GROUPS = (-0.0, 0.0, float("nan"), 7.0, None)
"""One value a file, or a row group, beside 1.0 in its first row where the value is no zero."""

TYPES = "k double, f float, s struct<x: double, n: bigint>"


def _values(first):
    """Ten rows a group: the id and the number."""
    for place, value in enumerate(GROUPS):
        for row in range(10):
            number = 1.0 if row == 0 and value != 0 else value
            yield first + 10 * place + row, number


@pytest.fixture(scope="module")
def rows(spark):
    """The rows in memory, not cached: Spark skips parts of its cache by such ranges too."""
    made = [
        (i, n, n, None if i % 10 == 9 else (n, i)) for i in (0, 100) for i, n in _values(first=i)
    ]
    return spark.createDataFrame(made, f"id bigint, {TYPES}")


@pytest.fixture(scope="module")
def floats(shared_lake, rows, tmp_path_factory):
    """The same rows in files of Spark with field ids, and in one of PyArrow without."""
    table = shared_lake.create_table("db.t", f"id bigint, {TYPES}")
    table.append(rows.where("id < 100").repartitionByRange(5, "id"))
    given = list(_values(first=100))
    numbers = [number for _, number in given]
    structs = [None if i % 10 == 9 else {"x": n, "n": i} for i, n in given]
    arrow = pa.table(
        {
            "id": pa.array([i for i, _ in given], pa.int64()),
            "k": pa.array(numbers, pa.float64()),
            "f": pa.array(numbers, pa.float32()),
            "s": pa.array(structs, pa.struct({"x": pa.float64(), "n": pa.int64()})),
        }
    )
    folder = tmp_path_factory.mktemp("added")
    pq.write_table(arrow, folder / "f.parquet", row_group_size=10)
    table.maintenance.add_files(f"`parquet`.`{folder}`")
    return table.refresh()


def _ids(frame):
    return {row.id for row in frame.select("id").collect()}


def _in_sub_query(table, where):
    table.to_df().createOrReplaceTempView("floats_elsewhere")
    query = f"select o.id from floats_elsewhere o where {where.format(t='o.')}"
    return table.scan(where=f"id in ({query})").to_df()


def _streamed(table, where, folder):
    found = []
    stream = table.read_stream(checkpoint=folder, where=where.format(t=""))
    query = stream.writeStream.option("checkpointLocation", str(folder))
    query = query.foreachBatch(lambda batch, _: found.append(batch.localCheckpoint()))
    query.trigger(availableNow=True).start().awaitTermination()
    (batch,) = found
    return batch


READS = {
    "scan": lambda table, where: table.scan(where=where.format(t="")).to_df(),
    "scan by a column": lambda table, where: table.scan(where=F.expr(where.format(t=""))).to_df(),
    "filter of Spark": lambda table, where: table.to_df().where(where.format(t="")),
    # What the scan says of floats is pushed, what comes after it is not.
    "filter of a scan": lambda table, where: (
        table.scan(where="k >= -1 and f >= -1 and (s is null or s.x >= -1)")
        .to_df()
        .where(where.format(t=""))
    ),
    "sub-query": _in_sub_query,
    "changes": lambda table, where: table.changes(where=where.format(t="")),
}


def _expected(rows, condition):
    return _ids(rows.where(condition.format(t="")))


# CI takes an equality, an order and a negation, by reads and by commands.
@pytest.mark.parametrize(
    ("read", "condition"),
    these(
        [("scan", CONDITIONS[0]), ("changes", CONDITIONS[8])],
        *(READS, CONDITIONS),
    ),
)
def test_reads(floats, rows, read, condition):
    expected = _expected(rows, condition)
    if read == "filter of a scan":
        expected &= _ids(rows.where("k >= -1 and f >= -1 and (s is null or s.x >= -1)"))
    assert expected
    assert _ids(READS[read](floats, condition)) == expected


def test_parts_of_structs_that_hold_floats_are_read_alone(shared_lake, spark):
    table = shared_lake.create_table("db.parts", "id bigint, s struct<x: double, n: bigint>")
    table.append(spark.range(10).selectExpr("id", "named_struct('x', -0.0D, 'n', id) as s"))

    def plan(rows):
        return rows._jdf.queryExecution().executedPlan().toString()

    rows = table.to_df()
    assert rows.where("s.x = 0").count() == table.scan(where="s.x = 0").count() == 10
    assert rows.where("s.x = 0 and s.n > 5").count() == 4
    assert "s:struct<n:bigint>>" in plan(rows.select("s.n"))
    assert "s:struct<x:double>>" in plan(rows.select("s.x"))
    assert "GreaterThan(s.n,5)]" in plan(rows.where("s.n > 5"))
    assert "PushedFilters: []" in plan(rows.where("s.x > 5"))


def test_streams(floats, rows, tmp_path):
    condition = CONDITIONS[0]
    assert _ids(_streamed(floats, condition, tmp_path / "c")) == _expected(rows, condition)


def _merge(table, branch, on):
    source = table.spark.range(200).selectExpr("id", "0 as n")
    on = f"target.id = source.id{on}"
    return table.merge(source, on=on, branch=branch)


def _updated_where_matched(table, branch, where):
    merge = _merge(table, branch, f" and {where.format(t='target.')}")
    merge.when_matched_update({"k": "99"}).execute()


def _updated_by_clause(table, branch, where):
    merge = _merge(table, branch, "")
    merge.when_matched_update({"k": "99"}, condition=where.format(t="target.")).execute()


def _updated_by_source(table, branch, where):
    merge = _merge(table, branch, " and source.n = 1")
    merge.when_not_matched_by_source_update({"k": "99"}, condition=where.format(t="target."))
    merge.execute()


def _overwritten(table, branch, where):
    none = table.to_df().limit(0)
    table.overwrite(none, where=where.format(t=""), branch=branch)


COMMANDS = {
    "delete": lambda table, branch, where: table.delete(where.format(t=""), branch=branch),
    "update": lambda table, branch, where: table.update(
        {"k": "99"}, where.format(t=""), branch=branch
    ),
    "overwrite": _overwritten,
    "merge on": _updated_where_matched,
    "merge clause": _updated_by_clause,
    "merge by source": _updated_by_source,
}


@pytest.mark.parametrize(
    ("command", "condition", "mode"),
    these(
        [
            ("delete", CONDITIONS[1], MODES[1]),
            ("merge on", CONDITIONS[4], MODES[0]),
            ("overwrite", CONDITIONS[3], MODES[0]),
        ],
        *(COMMANDS, CONDITIONS, MODES),
    ),
)
def test_commands(floats, rows, request, command, condition, mode):
    name = f"b{abs(hash(request.node.name))}"
    floats.create_branch(name)
    floats.set_properties({f"write.{each}.mode": mode for each in ("delete", "update", "merge")})
    COMMANDS[command](floats, name, condition)
    left = _ids(floats.scan(ref=name).to_df().where("k is null or k <> 99"))
    assert left == _ids(rows) - _expected(rows, condition)


JOINS = {
    # Spark concludes from the other conditions which values the table's column has.
    "target.k = source.k": {"zero", "nan", "seven"},
    "target.k = source.k and source.k = 0": {"zero"},
    "target.k = source.k and source.k > 5": {"nan", "seven"},
    "target.f <=> source.k and source.k in (0D, 5D)": {"zero"},
    "target.s.x = source.k and not source.k < 5": {"nan", "seven"},
}


@pytest.mark.parametrize(("on", "mode"), these([(list(JOINS)[-1], MODES[0])], JOINS, MODES))
def test_joins_by_floats(floats, rows, request, on, mode):
    name = f"j{abs(hash(request.node.name))}"
    floats.create_branch(name)
    floats.set_properties({"write.merge.mode": mode})
    given = "('zero', 0D), ('nan', double('NaN')), ('seven', 7D)"
    source = floats.spark.sql(f"select * from values {given} as s(name, k)")
    merge = floats.merge(source, on=on, branch=name).when_matched_update({"s": "null"})
    done = merge.execute()
    joined = rows.alias("target").join(source.alias("source"), F.expr(on))
    assert {row.name for row in joined.select("name").distinct().collect()} == JOINS[on]
    assert done.rows_updated == joined.count()
