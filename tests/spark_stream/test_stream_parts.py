"""Streams of some rows, some columns, a branch, and of all changes."""

import pytest

from frazil.errors import FrazilError, NoSuchRefError, ValidationError


def test_a_stream_of_the_rows_that_match(table, stream, rows):
    table.append(rows(1, 2, city="Oslo"))
    table.append(rows(3, city="Lima"))
    where = "city = 'Oslo' and id % 2 = 0"
    assert stream.drain(where=where) == [(2, "Oslo")]
    table.append(rows(4, 5, city="Oslo"))
    table.delete("id = 99")
    assert stream.drain(where=where) == [(4, "Oslo")]


@pytest.mark.check
def test_files_that_cannot_match_are_in_no_batch(lake, stream, spark):
    table = lake.create_table("db.t", "id bigint, city string", partition_by=["city"])
    for city in ("Oslo", "Lima", "Pune"):
        table.append(spark.createDataFrame([(1, city)], "id bigint, city string").coalesce(1))
    stream.read(where="city = 'Lima'")
    from frazil.spark.stream.source.log import StreamLog
    from frazil.storage.files import FileIO

    state = StreamLog(spark, FileIO(), f"file://{stream.checkpoint}").latest()
    [size] = state.batches["size"]
    sizes = table.inspect.data_files()["file_size_in_bytes"]
    assert size in sizes.to_list()
    assert stream.drain(where="city = 'Lima'") == [(1, "Lima")]


def test_a_stream_of_some_columns(table, stream, rows):
    table.append(rows(1, 2))
    assert stream.read(columns=["city", "ID"]).columns == ["city", "id"]
    assert stream.drain(columns="city") == [("Oslo",), ("Oslo",)]
    for columns in ([], "nope", ["id", "nope"]):
        with pytest.raises(ValidationError):
            stream.read(columns=columns)


@pytest.mark.check
def test_a_stream_of_a_branch(table, stream, rows):
    table.append(rows(1))
    table.create_branch("side")
    table.append(rows(2, city="main"))
    table.append(rows(3, city="side"), branch="side")
    assert stream.drain(branch="side") == [(1, "Oslo"), (3, "side")]
    table.append(rows(4, city="side"), branch="side")
    table.append(rows(5, city="main"))
    assert stream.drain(branch="side") == [(4, "side")]
    with pytest.raises(NoSuchRefError):
        stream.read(branch="nope")


@pytest.mark.parametrize("other", [{"branch": "side"}, {"where": "id > 1"}])
def test_a_checkpoint_is_of_one_branch_and_condition(table, stream, rows, other):
    table.append(rows(1))
    table.create_branch("side")
    stream.drain()
    with pytest.raises(FrazilError, match=next(iter(other))):
        stream.read(**other)


@pytest.mark.check
def test_a_stream_of_all_changes(table, stream, rows):
    table.append(rows(1, 2))
    assert stream.drain(changes=True, columns="id") == [
        (1, "INSERT", 0, table.current_snapshot.snapshot_id),
        (2, "INSERT", 0, table.current_snapshot.snapshot_id),
    ]
    table.delete("id = 1")
    table.apply_changes(rows(2, city="Lima"), keys="id", mode="equality-deletes")
    found = {(row[0], row[1]) for row in stream.drain(changes=True, columns="id")}
    assert found == {(1, "DELETE"), (2, "DELETE"), (2, "INSERT")}
    with pytest.raises(ValidationError, match="leave out on_overwrite"):
        stream.read(changes=True, on_delete="skip")
