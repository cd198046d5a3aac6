"""Isolation from what a handle gave out, and writes whose table changes meanwhile."""

import signal

import pytest
from table_rows import SIMPLE, frame, rows_of

from ci_share import in_circles, only_in_soak
from frazil.errors import ConflictError, ValidationError
from rival_commits import before_the_commit

ROWS = [(1, "a", 0.5), (2, "a", 1.5)]
OTHERS = [(3, "b", 2.5)]


@pytest.fixture
def table_settings():
    return {"schema": SIMPLE, "appends": [ROWS]}


def read(table):
    """Everything, given out by the handle, and without a tie to the table."""
    rows = [tuple(row) for row in table.to_df().collect()]
    return frame(table.spark, rows)


def others_append(lake, spark):
    lake.load_table("db.t").append(frame(spark, OTHERS).coalesce(1))


def test_what_went_through_the_handle_itself_is_no_conflict(spark, table):
    merged = read(table)
    table.append(frame(spark, OTHERS))
    table.overwrite(merged, where="city = 'a'", isolation="serializable")
    table.overwrite_partitions(merged, isolation="serializable")
    assert len(rows_of(table)) == 2


def test_without_an_isolation_level_added_rows_are_replaced(lake, spark, table):
    merged = read(table)
    others_append(lake, spark)
    table.overwrite(merged)
    assert rows_of(table) == sorted(ROWS)


@pytest.mark.parametrize("method", ["overwrite", "overwrite_partitions"])
def test_other_words_are_no_isolation_level(spark, table, method, files):
    before = files()
    with pytest.raises(ValidationError, match="serializable and snapshot"):
        getattr(table, method)(frame(spark, OTHERS), isolation="foo")
    assert files() == before


def write_together(table, df):
    """Two steps in one commit."""
    with table.transaction() as tx:
        tx.append(df)
        tx.overwrite(df, where="id = 3")


WRITES = {
    "append": lambda table, df: table.append(df),
    "overwrite": lambda table, df: table.overwrite(df, where="id = 1"),
    "transaction": write_together,
}


@pytest.mark.parametrize("write", ["append", only_in_soak("overwrite"), "transaction"])
def test_a_time_limit_after_the_swap_deletes_no_file(lake, spark, table, write):
    class LimitError(Exception):
        """A user's own."""

    def ring(number, stack):
        raise LimitError

    real = table.catalog.commit_table

    def commit_table(identifier, requirements, updates, **base):
        table.catalog.commit_table = real
        real(identifier, requirements, updates, **base)
        signal.raise_signal(signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, ring)
    table.catalog.commit_table = commit_table
    try:
        with pytest.raises(LimitError):
            WRITES[write](table, frame(spark, OTHERS))
    finally:
        signal.signal(signal.SIGALRM, before)
    rows = rows_of(lake.load_table("db.t"))
    assert rows == sorted([*(ROWS[1:] if write == "overwrite" else ROWS), *OTHERS])


@pytest.mark.parametrize("write", in_circles(["append", "transaction", "create"], test=1))
def test_a_write_that_was_refused_leaves_no_file_behind(lake, spark, table, write, files):
    before = files()
    rival = lake.load_table("db.t")
    other_type = spark.sql("select 'x' as id, 'a' as city, 1.0D as x")
    if write == "create":
        real_create = lake.catalog.create_staged_table

        def create_staged_table(staged):
            lake.catalog.create_staged_table = real_create
            lake.create_table(staged.identifier, SIMPLE)
            return real_create(staged)

        lake.catalog.create_staged_table = create_staged_table
        with pytest.raises(Exception, match="exists"):
            lake.create_table_as_select("db.u", frame(spark, OTHERS))
        assert files() == before
        return
    before_the_commit(table, lambda: rival.replace_as_select(other_type))
    with pytest.raises(ConflictError, match="write them again"):
        WRITES[write](table, frame(spark, OTHERS))
    left = files() - before
    named = {path.rsplit("/", 1)[-1] for path in rival.scan().plan().files["file_path"]}
    assert {path.rsplit("/", 1)[-1] for path in left} == named
    assert rows_of(table.refresh()) == [("x", "a", 1.0)]


def test_the_summary_says_which_spark_wrote(spark, table):
    """The names are those of the Java runtime's snapshots."""
    summary = table.current_snapshot.summary
    assert summary["engine-name"] == "spark"
    assert summary["engine-version"] == spark.version
    assert summary["app-id"] == summary["spark.app.id"] == spark.sparkContext.applicationId
    assert summary["iceberg-version"].startswith("Frazil ")


def test_a_transaction_under_a_wap_id_is_published_as_a_whole(lake, spark, table, session):
    table.set_properties({"write.wap.enabled": "true"})
    session(spark__wap__id="w")
    with table.transaction() as tx:
        tx.append(frame(spark, OTHERS))
        # The second write sees the first: the row goes again.
        tx.overwrite(frame(spark, [(4, "c", 0.0)]), where="id = 3")
    session(spark__wap__id="")
    assert rows_of(table) == sorted(ROWS)
    table.publish_changes("w")
    assert rows_of(table) == sorted([*ROWS, (4, "c", 0.0)])


@pytest.mark.parametrize("setting", ["spark__wap__id", "spark__wap__branch"])
def test_a_table_is_not_replaced_while_writes_are_staged(spark, table, session, setting):
    table.set_properties({"write.wap.enabled": "true"})
    session(**{setting: "w"})
    with pytest.raises(ValidationError, match="cannot be staged"):
        table.replace_as_select(frame(spark, OTHERS))
    session(**{setting: ""})
    assert rows_of(table) == sorted(ROWS)
