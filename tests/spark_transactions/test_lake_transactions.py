"""Several tables in one transaction, by methods: all or nothing, and what others do meanwhile."""

import threading

import pytest
from transaction_cases import COLUMNS, ROWS, both, collected, frame, rows, rows_of

import frazil
from ci_share import only_in_soak, these
from frazil.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    ConfigurationError,
    ConflictError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)

pytestmark = [pytest.mark.usefixtures("tables")]


@pytest.mark.parametrize(
    "lake_settings",
    [only_in_soak("sqlite"), "postgres", only_in_soak("serve")],
    indirect=True,
)
def test_all_changes_are_one_and_each_sees_the_last(lake, spark):
    versions = [len(lake.load_table(name).metadata.metadata_log) for name in ("db.a", "db.b")]
    with lake.transaction() as tx:
        a, b = tx.table("db.a"), tx.table("db.b")
        a.append(frame(spark, [(3, 30)]))
        with a.update_schema() as change:
            change.add_column("s", "string")
        b.delete("id = 1")
        b.merge(
            a.scan("id > 1", columns=["id", "n"]).to_df(), on=["id"]
        ).when_matched_update_all().when_not_matched_insert_all().execute()
        a.update(set={"s": "'x'"}, where="id = 3")
        made = tx.create_table_as_select("db.c", b, partition_by=["id"])
        made.append(frame(spark, [(9, 90)]))
        tx.create_table("db.d", COLUMNS)
        assert rows_of(a) == [(1, 10, None), (2, 20, None), (3, 30, "x")]
        assert rows_of(b) == [(2, 20), (3, 30)]
        assert (made.count(), tx.table("db.c").count()) == (3, 3)
        assert both(lake) == (ROWS, ROWS)
        assert not lake.table_exists("db.c")
        assert tx.table_exists("db.c")
        assert a.inspect.snapshots().height == 3
    assert rows(lake, "db.a") == [(1, 10, None), (2, 20, None), (3, 30, "x")]
    assert rows(lake, "db.b") == [(2, 20), (3, 30)]
    assert rows(lake, "db.c") == [(2, 20), (3, 30), (9, 90)]
    assert rows(lake, "db.d") == []
    logs = [len(lake.load_table(name).metadata.metadata_log) for name in ("db.a", "db.b")]
    assert logs == [n + 1 for n in versions]
    with pytest.raises(ValidationError, match="closed"):
        a.append(frame(spark, [(4, 40)]))
    with pytest.raises(ValidationError, match="closed"):
        tx.table("db.a")


@pytest.mark.check
def test_an_exception_changes_nothing_and_leaves_no_file(lake, spark, files):
    before = files()

    def fail():
        with lake.transaction() as tx:
            tx.table("db.a").append(frame(spark, [(3, 30)]))
            tx.table("db.b").delete("id = 1")
            tx.create_table_as_select("db.c", frame(spark, [(3, 30)]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert both(lake) == (ROWS, ROWS)
    assert not lake.table_exists("db.c")
    assert files() == before


def test_a_refused_command_leaves_the_rest_of_the_transaction(lake, spark, files):
    with lake.transaction() as tx:
        tx.table("db.a").append(frame(spark, [(3, 30)]))
        with pytest.raises(ValidationError):
            tx.table("db.a").append(frame(spark, [("x",)], "other string"))
        with pytest.raises(TableAlreadyExistsError):
            tx.create_table("db.b", COLUMNS)
        with pytest.raises(NoSuchTableError):
            tx.table("db.A")
    assert both(lake) == ([*ROWS, (3, 30)], ROWS)


def write_both(tx, spark):
    """Adds to one table, and changes rows of the other."""
    tx.table("db.a").append(frame(spark, [(3, 30)]))
    tx.table("db.b").update(set={"n": "n + 1"}, where="id = 1")


APPENDED = {
    "in the table that is appended to": (
        lambda lake, spark: lake.load_table("db.a").append(frame(spark, [(7, 70)])), None,
    ),
    "in the second table, elsewhere": (
        lambda lake, spark: lake.load_table("db.b").set_properties(x="1"), None,
    ),
    "in the second table": (
        lambda lake, spark: lake.load_table("db.b").delete("id = 1"), ConflictError,
    ),
    "drop of the second": (lambda lake, spark: lake.drop_table("db.b"), NoSuchTableError),
}  # fmt: skip


@pytest.mark.check
@pytest.mark.parametrize("mode", ["copy-on-write", only_in_soak("merge-on-read")])
@pytest.mark.parametrize(
    "rival", [each if each == "in the second table" else only_in_soak(each) for each in APPENDED]
)
def test_what_others_commit_meanwhile(lake, spark, files, rival, mode):
    act, error = APPENDED[rival]
    lake.load_table("db.b").set_properties({"write.update.mode": mode, "write.delete.mode": mode})
    tx = lake.transaction()
    write_both(tx, spark)
    act(lake, spark)
    if error is None:
        tx.commit()
        extra = [(7, 70)] if "append" in rival else []
        assert both(lake) == ([*ROWS, (3, 30), *extra], [(1, 11), (2, 20)])
        return
    theirs = files()
    with pytest.raises(error):
        tx.commit()
    assert rows(lake, "db.a") == ROWS
    assert not (files() - theirs)
    ours = {path for path in theirs - files() if "/b/" in path and path.endswith(".parquet")}
    # The updated row, and where it was.
    assert len(ours) == (2 if mode == "merge-on-read" else 1)


@pytest.mark.check
def test_tables_are_read_as_when_it_began(lake, spark):
    with lake.transaction() as tx:
        lake.load_table("db.a").append(frame(spark, [(7, 70)]))
        lake.create_table("db.late", COLUMNS)
        assert rows_of(tx.table("db.a")) == ROWS
        with pytest.raises(NoSuchTableError):
            tx.table("db.late")
    assert rows(lake, "db.a") == [*ROWS, (7, 70)]


def test_who_only_reads_conflicts_with_nobody(lake, spark, files):
    with lake.transaction() as tx:
        assert rows_of(tx.table("db.a")) == ROWS
        lake.load_table("db.a").append(frame(spark, [(7, 70)]))
        before = files()
    assert files() == before


def test_it_is_run_again_after_a_conflict(lake, spark):
    seen = []

    def move(tx):
        (found,) = collected(tx.sql("SELECT n FROM db.a WHERE id = 1"))
        seen.append(found[0])
        if len(seen) == 1:
            lake.load_table("db.a").update(set={"n": "n + 5"}, where="id = 1")
        tx.sql("UPDATE db.a SET n = n - 1 WHERE id = 1")
        tx.sql("UPDATE db.b SET n = n + 1 WHERE id = 1")
        return found[0]

    assert lake.run_transaction(move) == 15
    assert seen == [10, 15]
    assert both(lake) == ([(1, 14), (2, 20)], [(1, 11), (2, 20)])


@pytest.mark.check
@pytest.mark.parametrize("retries", [only_in_soak(0), None])
def test_it_is_not_run_for_ever(lake, spark, retries):
    lake.load_table("db.a").set_properties({"commit.retry.num-retries": "1"})
    count = []

    def conflicts(tx):
        count.append(1)
        rows_of(tx.table("db.a"))
        lake.load_table("db.a").append(frame(spark, [(50, 0)]))
        tx.table("db.b").append(frame(spark, [(4, 40)]))

    with pytest.raises(ConflictError):
        lake.run_transaction(conflicts, retries=retries)
    assert len(count) == (1 if retries == 0 else 2)
    assert rows(lake, "db.b") == ROWS
    with pytest.raises(ZeroDivisionError):
        lake.run_transaction(lambda tx: 1 / 0)


@pytest.mark.parametrize("retries", [-1, "2", 1.5])
def test_tries_that_are_no_number_are_refused(lake, retries):
    with pytest.raises(ConfigurationError, match="retries is a number of tries from 0 on"):
        lake.run_transaction(lambda tx: None, retries=retries)


@pytest.mark.check
@pytest.mark.parametrize("took_place", [True, False])
def test_a_lost_answer(lake, spark, files, took_place, monkeypatch):
    real = lake.catalog.commit_tables

    def lost(commits):
        if took_place:
            real(commits)
        raise CommitStateUnknownError("the answer was lost")

    tx = lake.transaction()
    write_both(tx, spark)
    written = files()
    monkeypatch.setattr(lake.catalog, "commit_tables", lost)
    if took_place:
        tx.commit()
        assert both(lake) == ([*ROWS, (3, 30)], [(1, 11), (2, 20)])
        return
    with pytest.raises(CommitStateUnknownError):
        tx.commit()
    assert files() == written
    assert both(lake) == (ROWS, ROWS)


@pytest.mark.check
def test_an_interruption_after_the_swap_deletes_nothing(lake, spark, monkeypatch):
    real = lake.catalog.commit_tables

    def interrupted(commits):
        real(commits)
        raise KeyboardInterrupt

    tx = lake.transaction()
    write_both(tx, spark)
    monkeypatch.setattr(lake.catalog, "commit_tables", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tx.commit()
    assert both(lake) == ([*ROWS, (3, 30)], [(1, 11), (2, 20)])


def test_others_kept_being_first(lake, spark, files, monkeypatch):
    lake.load_table("db.a").set_properties({"commit.retry.num-retries": "2"})
    count = []

    def refused(commits):
        count.append(1)
        raise CommitFailedError("another writer was first")

    tx = lake.transaction()
    before = files()
    write_both(tx, spark)
    monkeypatch.setattr(lake.catalog, "commit_tables", refused)
    with pytest.raises(CommitFailedError, match="tables "):
        tx.commit()
    assert len(count) == 3
    assert files() == before


@pytest.mark.check
@pytest.mark.parametrize("lake_settings", ["serve"], indirect=True)
def test_a_name_that_is_taken_meanwhile(lake, spark, files):
    tx = lake.transaction()
    tx.table("db.a").append(frame(spark, [(3, 30)]))
    tx.create_table_as_select("db.c", frame(spark, [(3, 30)]))
    lake.create_table("db.c", COLUMNS)
    with pytest.raises(TableAlreadyExistsError):
        tx.commit()
    assert rows(lake, "db.a") == ROWS
    assert rows(lake, "db.c") == []
    assert not [path for path in files() if path.endswith(".parquet") and "/c/" in path]


@pytest.mark.check
def test_branches(lake, spark):
    lake.load_table("db.a").create_branch("audit")
    with lake.transaction() as tx:
        a = tx.table("db.a")
        a.append(frame(spark, [(3, 30)]), branch="audit")
        tx.table("db.b").create_branch("new")
        tx.table("db.b").append(a.scan(ref="audit").to_df(), branch="new")
        # Another branch than the one that was read.
        lake.load_table("db.a").append(frame(spark, [(7, 70)]))
    assert both(lake) == ([*ROWS, (7, 70)], ROWS)
    assert collected(lake.load_table("db.b").scan(ref="new").to_df()) == sorted(
        [*ROWS, *ROWS, (3, 30)]
    )


def test_threads_change_tables_side_by_side_and_share_none(lake, spark):
    errors = []

    def append(tx, name, errors):
        try:
            tx.table(name).append(frame(spark, [(3, 30)]))
        except ValidationError as error:
            errors.append(error)

    with lake.transaction() as tx:
        threads = [
            threading.Thread(target=append, args=(tx, name, errors)) for name in ("db.a", "db.b")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        append(tx, "db.a", errors)
    assert [("one thread" in str(error)) for error in errors] == [True]
    assert both(lake) == ([*ROWS, (3, 30)], [*ROWS, (3, 30)])


def test_what_a_transaction_is_not(lake, spark, tmp_path):
    with lake.transaction() as tx:
        with pytest.raises(UnsupportedError, match="not nested"):
            tx.table("db.a").transaction()
        other = frazil.connect(spark, warehouse=str(tmp_path / "other"), name="other")
        other.create_namespace("db")
        with pytest.raises(ValidationError, match="another lake"):
            tx.table(other.create_table("db.x", COLUMNS))
        other.close()
    with pytest.raises(ValidationError, match="isolation level"):
        lake.transaction(isolation="none")
    folder = frazil.connect(spark, type="filesystem", warehouse=str(tmp_path / "folder"))
    with pytest.raises(UnsupportedError, match="filesystem catalog default commits each table"):
        folder.transaction()
    with pytest.raises(UnsupportedError, match="filesystem catalog"):
        folder.sql("BEGIN TRANSACTION")
    with pytest.raises(ValidationError, match="no transaction"):
        folder.sql("COMMIT")


# Batches of a stream that are written to two tables: each counts once in both.


def test_a_batch_that_comes_again_does_nothing(lake, spark, files):
    calls = []

    def write(tx):
        calls.append(1)
        tx.table("db.a").append(frame(spark, [(3, 30)]))
        tx.table("db.b").delete("id = 1")
        return "done"

    batch = frazil.Batch("q", 0)
    assert lake.run_transaction(write, batch=batch) == "done"
    before = files()
    assert lake.run_transaction(write, batch=batch) is None
    assert files() == before
    assert both(lake) == ([*ROWS, (3, 30)], ROWS[1:])
    assert lake.run_transaction(write, batch=frazil.Batch("q", 1)) == "done"
    assert lake.run_transaction(write, batch=frazil.Batch("other", 0)) == "done"
    assert rows(lake, "db.a") == [*ROWS, *[(3, 30)] * 3]


# What others delete of files that a transaction writes anew is not lost by its later steps.


FOUR = [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
DDL = "id bigint, v string"
MARKED, COPIED = "merge-on-read", "copy-on-write"


def upserted(tx):
    tx.upsert(tx.spark.createDataFrame([(3, "new")], DDL), keys="id")


STEPS = {
    "update": lambda tx: tx.update({"v": "'Y'"}, "id = 2"),
    "delete": lambda tx: tx.delete("id = 2"),
    "the same row": lambda tx: tx.update({"v": "'Y'"}, "id = 3"),
    "marks of the same row": upserted,
}


@pytest.mark.check
@pytest.mark.parametrize(
    ("step", "version"), these([("update", 3), ("marks of the same row", 2)], STEPS, [2, 3])
)
def test_a_row_that_others_deleted_does_not_come_back(lake, step, version):
    """The second step writes anew what the first one wrote: the rival's delete is of neither."""
    modes = {f"write.{name}.mode": COPIED for name in ("update", "delete")}
    modes["write.merge.mode"] = MARKED
    table = lake.create_table("db.t", DDL, format_version=version, properties=modes)
    table.append(lake.spark.createDataFrame(FOUR, DDL).coalesce(1))
    rival = lake.load_table("db.t")
    transaction = table.transaction()
    transaction.update({"v": "'X'"}, "id = 1")
    STEPS[step](transaction)
    rival.set_properties({"write.delete.mode": MARKED})
    rival.delete("id = 3")
    with pytest.raises(ConflictError):
        transaction.commit()
    found = sorted(tuple(row) for row in lake.load_table("db.t").scan().to_df().collect())
    assert found == [row for row in FOUR if row[0] != 3]


def test_one_step_goes_on(lake):
    table = lake.create_table("db.t", DDL, properties={"write.update.mode": COPIED})
    table.append(lake.spark.createDataFrame(FOUR, DDL).coalesce(1))
    rival = lake.load_table("db.t")
    with table.transaction() as tx:
        tx.update({"v": "'X'"}, "id = 1")
        rival.set_properties({"write.delete.mode": MARKED})
        rival.delete("id = 3")
    found = sorted(tuple(row) for row in lake.load_table("db.t").scan().to_df().collect())
    assert found == [(1, "X"), (2, "b"), (4, "d")]
