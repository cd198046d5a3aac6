"""Columns of a user that are called as columns that Frazil adds to rows: none is lost or taken."""

import duckdb
import pytest

from ci_share import only_in_soak
from frazil.spark.session.free_names import free_name, free_names
from frazil.storage.files import local_path

OURS = (
    "frazil_p0", "__frazil_p0", "_row_id", "_last_updated_sequence_number", "_file", "_pos",
    "_deleted", "_frazil_ordinal", "_frazil_pos", "_frazil_sequence", "_frazil_first_row_id",
    "_frazil_key", "_frazil_words", "_frazil_key_0", "_frazil_total", "_frazil_labelled_file",
    "_frazil_joined_ordinal", "_frazil_deletes", "id (field 1)", "_frazil_ordinal (field 9)",
    "_metadata", "_tmp_metadata_row_index", "rows", "FRAZIL_P1",
)  # fmt: skip


def row(number, mark="x"):
    return {"id": number, **{name: f"{mark}{number} {name}" for name in OURS}}


def columns(spark, spelled):
    """The names of the columns, a function that makes rows of them, and one that compares rows."""
    names = ["id", *(spelled(name) for name in OURS)]
    ddl = ", ".join(f"`{name}` {'bigint' if name == 'id' else 'string'}" for name in names)

    def rows(numbers, mark="x"):
        return spark.createDataFrame([tuple(row(n, mark).values()) for n in numbers], ddl)

    def check(found, expected):
        got = sorted((tuple(r[name] for name in names) for r in found), key=lambda r: r[0])
        assert got == [tuple(each.values()) for each in expected]

    return names, rows, check


@pytest.mark.check
@pytest.mark.parametrize("spelled", [str, only_in_soak(str.upper)], ids=["as-ours", "upper-case"])
def test_every_operation_keeps_them(spark, lake, spelled):
    names, rows, check = columns(spark, spelled)
    table = lake.create_table(
        "db.t", rows([]), partition_by=["bucket(2, id)", f"`{names[1]}`"], format_version=3
    )
    table.append(rows(range(4)).coalesce(1))
    check(table.to_df().collect(), [row(n) for n in range(4)])
    files = [local_path(path) for path in table.scan().plan().files["file_path"]]
    read = duckdb.read_parquet(files).fetchall()
    check([dict(zip(names, each, strict=True)) for each in read], [row(n) for n in range(4)])
    # Files that keep rows are written with the rows' lineage beside the user's columns.
    table.replace_sort_order("id")
    with table.update_spec() as change:
        change.remove_field("id_bucket").remove_field(names[1])
    table.append(rows(range(4, 8)).coalesce(1))
    first = table.current_snapshot.snapshot_id
    where = f"`{names[3]}` in ('x5 _row_id', 'x6 _row_id')"
    assert names[3].lower() == "_row_id"
    table.overwrite(rows([9], "y"), where=where)
    expected = [row(n) for n in (0, 1, 2, 3, 4, 7)] + [row(9, "y")]
    check(table.to_df().collect(), expected)
    check(table.scan(where=where.replace("x5", "x7")).to_df().collect(), [row(7)])
    ids = table.scan(columns=["id", names[3]]).to_df().collect()
    assert {r[1] for r in ids} == {each["_row_id"] for each in expected}
    changes = table.changes(from_snapshot_id=first).collect()
    assert sorted((r["id"], r["_change_type"]) for r in changes) == [
        (5, "DELETE"), (6, "DELETE"), (9, "INSERT"),
    ]  # fmt: skip
    check([r for r in changes if r["id"] == 6], [row(6)])
    net = table.net_changes(from_snapshot_id=first).collect()
    assert sorted(r["id"] for r in net) == [5, 6, 9]
    assert {r[names[3]] for r in net} == {"x5 _row_id", "x6 _row_id", "y9 _row_id"}


@pytest.mark.check
@pytest.mark.parametrize(
    "spelled", [only_in_soak(str), only_in_soak(str.upper)], ids=["as-ours", "upper-case"]
)
def test_changes_by_key_sorted_files_and_streams_keep_them(spark, lake, spelled, tmp_path):
    names, rows, check = columns(spark, spelled)
    table = lake.create_table("db.t", rows([]), format_version=3)
    table.append(rows([0, 1, 2, 3]).coalesce(1))
    table.upsert(rows([1, 10], "u"), "id")
    table.apply_changes(rows([2, 11], "v"), keys="id", mode="equality-deletes")
    table.apply_changes(rows([3, 12]), keys=["id", names[5]], mode="merge")
    expected = [
        row(0), row(1, "u"), row(2, "v"), row(3), row(10, "u"), row(11, "v"), row(12),
    ]  # fmt: skip
    check(table.to_df().collect(), expected)
    streamed = []

    def drain():
        df = table.read_stream(checkpoint=tmp_path / "checkpoint")
        writer = df.writeStream.foreachBatch(lambda batch, _: streamed.extend(batch.collect()))
        writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    drain()
    check(streamed, expected)
    table.compact(strategy="sort", sort_order=f"`{names[4]}` DESC", rewrite_all=True)
    table.append(rows([13]))
    drain()
    check(streamed, [*expected, row(13)])
    check(table.to_df().collect(), [*expected, row(13)])


def test_free_names():
    assert free_name("a", ["b"]) == "a"
    assert free_name("a", ["A", "a_1"]) == "a_2"
    # Java takes these for the same letters, whatever the case.
    assert free_name("frazil", ["FRAZ\u0131L"]) == "frazil_1"
    assert free_names(["k", "K"], ["\u212a"]) == ["k_1", "K_2"]
