"""What a transaction looked for, found or not, is the same where it is committed."""

import pytest
from transaction_cases import COLUMNS, ROWS, frame, make_tables, rows_of

import frazil
from ci_share import only_in_soak
from frazil.errors import ConflictError

MODES = ["copy-on-write", only_in_soak("merge-on-read")]


@pytest.fixture(params=MODES)
def tables(lake, request):
    """The lake's tables `db.a` and `db.b`, whose rows are changed in one way."""
    modes = {f"write.{name}.mode": request.param for name in ("delete", "update", "merge")}
    return make_tables(lake, **modes)


def merge(table, *ids):
    source = frame(table.spark, [(i, 0) for i in ids])
    return table.merge(source, on="target.id = source.id")


# Each is about rows of the id 3, of which there are none, or of all rows.
ABSENT = {
    "delete": lambda t: t.delete("id = 3"),
    "delete after a look at rows": lambda t: t.delete("n / 10 = 3"),
    "update": lambda t: t.update(set={"n": "0"}, where="id = 3"),
    "merge": lambda t: merge(t, 3).when_matched_delete().execute(),
    "merge of what the source lacks": lambda t: (
        merge(t, 1, 2).when_not_matched_by_source_delete().execute()
    ),
}
READS = {
    "count": lambda t: t.count(),
    "aggregate": lambda t: t.scan().aggregate("max(id)").to_df().collect(),
    "a scan of no file": lambda t: t.scan("id = 3").to_df().collect(),
}
STATEMENTS = (
    "DELETE FROM db.a WHERE id = 3",
    "UPDATE db.a SET n = 0 WHERE id = 3",
    "MERGE INTO db.a USING (SELECT 3L AS id) s ON a.id = s.id WHEN MATCHED THEN DELETE",
    "MERGE INTO db.a USING (SELECT 3L AS id) s ON a.id = s.id WHEN MATCHED THEN UPDATE SET n = 0",
    "SELECT count(*) FROM db.a",
    "SELECT min(id) FROM db.a WHERE id = 3",
    "SELECT EXISTS (SELECT * FROM db.a WHERE id = 3)",
    "INSERT INTO db.b SELECT * FROM db.a WHERE id = 3",
    "DELETE FROM db.b WHERE id IN (SELECT id + 10 FROM db.a)",
)
# Each finds the row of the id 1, and so does nothing.
FOUND = {
    "merge": lambda t: merge(t, 1).when_not_matched_insert_all().execute(),
    "merge with a clause that is not met": lambda t: (
        merge(t, 1)
        .when_matched_update_all(condition="target.n < 0")
        .when_not_matched_insert_all()
        .execute()
    ),
}
FOUND_STATEMENTS = (
    "MERGE INTO db.a USING (SELECT 1L AS id, 0L AS n) s ON a.id = s.id "
    "WHEN NOT MATCHED THEN INSERT *",
)


def begun(lake, commands, statements=()):
    """A transaction for each command on `db.a`, which also changes something without a row."""
    found = {}
    for name, command in commands.items():
        tx = found[name] = lake.transaction()
        command(tx.table("db.a"))
        tx.table("db.b").set_properties({"changed": "yes"})
    for statement in statements:
        tx = found[statement] = lake.transaction()
        tx.sql(statement).collect()
        tx.table("db.b").set_properties({"changed": "yes"})
    return found


def begun_alone(lake, commands):
    """The same by transactions of `db.a` alone."""
    found = {}
    for name, command in commands.items():
        tx = found[f"{name}, alone"] = lake.load_table("db.a").transaction()
        command(tx)
        tx.set_properties({"changed": "yes"})
    return found


def check_refused(lake, transactions):
    """Each of the transactions conflicts, and changes nothing."""
    succeed = []
    for name, tx in transactions.items():
        try:
            tx.commit()
        except ConflictError:
            continue
        succeed.append(name)
    assert succeed == []
    for name in ("db.a", "db.b"):
        assert "changed" not in lake.load_table(name).properties


@pytest.mark.usefixtures("tables")
def test_rows_that_were_not_there(lake, spark):
    transactions = {
        **begun(lake, ABSENT | READS, STATEMENTS),
        **begun_alone(lake, ABSENT),
    }
    lake.load_table("db.a").append(frame(spark, [(3, 30)]))
    check_refused(lake, transactions)


@pytest.mark.usefixtures("tables")
def test_rows_that_were_there(lake, spark):
    transactions = {**begun(lake, FOUND, FOUND_STATEMENTS), **begun_alone(lake, FOUND)}
    lake.load_table("db.a").delete("id = 1")
    check_refused(lake, transactions)


@pytest.mark.usefixtures("tables")
def test_other_rows(lake, spark):
    """A command is compared by the rows that it is about; an upsert of no row is about none."""
    commands = {**ABSENT, **FOUND, "upsert": lambda t: t.upsert(frame(spark, []), keys="id")}
    del commands["merge of what the source lacks"]
    transactions = {**begun(lake, commands), **begun_alone(lake, commands)}
    lake.load_table("db.a").append(frame(spark, [(9, 90)]))
    for name, tx in transactions.items():
        tx.commit()
        changed = lake.load_table("db.a" if "alone" in name else "db.b")
        assert changed.properties["changed"] == "yes"
        changed.remove_properties("changed")
    assert rows_of(lake.load_table("db.a")) == [*ROWS, (9, 90)]


@pytest.mark.usefixtures("tables")
def test_levels(lake, spark):
    """The command's own level counts, which the table's property may say."""
    lake.load_table("db.a").set_properties({"write.delete.isolation-level": "snapshot"})
    transactions = begun(lake, {"delete": ABSENT["delete"]})
    lake.load_table("db.a").append(frame(spark, [(3, 30)]))
    transactions["delete"].commit()
    assert lake.load_table("db.b").properties["changed"] == "yes"


def test_a_batch_is_remembered_by_what_is_changed_alone(lake, spark):
    make_tables(lake)
    before = lake.load_table("db.a").metadata

    def work(tx):
        tx.table("db.a").delete("id = 3")
        tx.table("db.b").delete("id = 3")
        tx.table("db.b").append(frame(spark, [(3, 30)]))

    for _ in range(2):
        lake.run_transaction(work, batch=frazil.Batch("q", 0))
    assert rows_of(lake.load_table("db.b")) == [*ROWS, (3, 30)]
    assert lake.load_table("db.a").metadata == before


def test_a_table_that_others_made_short_is_no_later_one(lake, spark):
    """Its metadata of the begin is deleted: the work is done again, of one moment."""
    short = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    for name, n in (("db.x", 10), ("db.y", 0)):
        made = lake.create_table(name, COLUMNS, properties=short)
        made.append(frame(spark, [(1, n)]))
    seen = []

    def move(tx):
        (x,) = rows_of(tx.table("db.x"))
        if not seen:
            with lake.transaction() as other:
                other.table("db.x").update(set={"n": "n - 4"})
                other.table("db.y").update(set={"n": "n + 4"})
            for number in range(2):
                lake.load_table("db.y").set_properties({"touched": str(number)})
        seen.append(x[1])
        (y,) = rows_of(tx.table("db.y"))
        return x[1] + y[1]

    assert (lake.run_transaction(move), seen) == (10, [10, 6])
