"""What a stream does with snapshots that are not appends, and with tables that changed under it."""

import shutil

import pytest

from frazil.errors import NoSuchSnapshotError, ValidationError


def ids(rows):
    return [row[0] for row in rows]


@pytest.fixture
def begun(table, stream, rows):
    """A stream that has read the rows 1 to 3."""
    table.append(rows(1, 2, 3))
    assert ids(stream.drain()) == [1, 2, 3]
    return table


def overwrite(table, rows):
    table.overwrite(rows(20), where="id = 2")


def delete(table, rows):
    table.overwrite(rows(1).where("id < 0"), where="id >= 1")


REMOVALS = {
    "overwrite": (overwrite, "on_overwrite", "streaming-skip-overwrite-snapshots"),
    "delete": (delete, "on_delete", "streaming-skip-delete-snapshots"),
}


@pytest.mark.check
@pytest.mark.parametrize("kind", REMOVALS)
def test_a_removal_fails_a_stream_unless_it_skips_it(begun, stream, rows, kind):
    remove, keyword, java = REMOVALS[kind]
    begun.append(rows(4))
    remove(begun, rows)
    assert begun.current_snapshot.operation == kind
    begun.append(rows(5))
    with pytest.raises(ValidationError, match=f"{keyword}='skip'") as told:
        stream.read()
    assert str(begun.current_snapshot.parent_snapshot_id) in str(told.value)
    other = "on_delete" if keyword == "on_overwrite" else "on_overwrite"
    with pytest.raises(ValidationError, match=keyword):
        stream.read(**{other: "skip"})
    assert ids(stream.drain(options={java: "true"})) == [4, 5]


@pytest.mark.check
def test_a_removal_fails_a_running_query_with_its_reason(begun, stream, rows):
    query = stream.start(stream.read(poll_interval=0.2), processingTime="0 seconds")
    begun.append(rows(4))
    overwrite(begun, rows)
    with pytest.raises(Exception, match="on_overwrite='skip'"):
        query.awaitTermination(60)
    begun.append(rows(5))
    assert ids(stream.drain(on_overwrite="skip")) in ([5], [4, 5])
    assert ids(stream.sink.rows) == [1, 2, 3, 4, 5]


@pytest.mark.check
def test_changes_are_those_of_the_table(begun, stream, lake, tmp_path, rows):
    start = begun.current_snapshot.snapshot_id
    begun.append(rows(4))
    overwrite(begun, rows)
    delete(begun, rows)
    begun.append(rows(6))
    stream.checkpoint = str(tmp_path / "changes")
    asked = {"on_overwrite": "changes", "on_delete": "changes", "from_snapshot_id": start}
    expected = sorted(tuple(row) for row in begun.changes(start).collect())
    assert stream.drain(max_rows_per_batch=2, **asked) == expected
    # A batch never holds part of a snapshot.
    seen = [{row[-1] for row in batch} for batch in stream.last.batches.values() if batch]
    assert sum(map(len, seen)) == len(set().union(*seen)) == 4


@pytest.mark.check
def test_compactions_are_passed_over(begun, stream, rows):
    begun.append(rows(4))
    begun.compact(rewrite_all=True)
    assert begun.current_snapshot.operation == "replace"
    begun.append(rows(5))
    assert ids(stream.drain()) == [4, 5]
    begun.compact(rewrite_all=True)
    assert ids(stream.drain()) == []
    assert ids(begun.to_df().orderBy("id").collect()) == [1, 2, 3, 4, 5]


@pytest.mark.check
def test_what_expired_is_told_where_it_was_not_read(begun, stream, rows):
    def expire():
        begun.maintenance.expire_snapshots(
            retain_last=1, older_than=begun.current_snapshot.timestamp_ms + 1
        )

    begun.append(rows(4))
    expire()
    assert ids(stream.drain()) == [4]
    for i in (5, 6):
        begun.append(rows(i))
    expire()
    with pytest.raises(NoSuchSnapshotError, match="expired"):
        stream.read()


@pytest.mark.check
def test_a_rollback_behind_what_was_read_is_told(begun, stream, rows):
    first = begun.current_snapshot.snapshot_id
    begun.append(rows(4))
    assert ids(stream.drain()) == [4]
    begun.rollback_to_snapshot(first)
    with pytest.raises(ValidationError, match="not an ancestor"):
        stream.read()


@pytest.mark.check
def test_files_that_are_gone_fail_the_query(begun, stream, rows):
    """Spark's stream leaves such files out where it lists them itself."""
    begun.append(rows(4))
    df = stream.read()
    shutil.rmtree(begun.location.removeprefix("file://") + "/data")
    with pytest.raises(Exception, match="does not exist"):
        stream.drain(df)


def test_a_checkpoint_is_of_one_table_and_one_kind(begun, stream, lake, rows):
    with pytest.raises(ValidationError, match="of a stream of rows"):
        stream.read(on_delete="changes")
    lake.drop_table("db.t")
    lake.create_table("db.t", "id bigint, city string")
    with pytest.raises(ValidationError, match="give another checkpoint"):
        stream.read()


def test_a_log_that_is_gone_is_told(begun, stream):
    shutil.rmtree(stream.checkpoint + "/frazil")
    with pytest.raises(ValidationError, match="is gone"):
        stream.read()


@pytest.mark.check
def test_once_takes_one_batch_and_refuses_several(table, stream, rows):
    for i in range(3):
        table.append(rows(i))
    query = stream.start(stream.read(max_files_per_batch=1), once=True)
    with pytest.raises(Exception, match="availableNow"):
        query.awaitTermination()
