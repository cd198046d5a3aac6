"""What happens to a source between two runs: it is followed exactly, or stops and says what to do.

The other side of each case is PostgreSQL itself: after a run the table has its rows under its
names, or the run stopped and the table is as it was.
"""

import threading
import time

import psycopg
import pytest

import frazil.cdc.initial
from ci_share import only_in_soak
from frazil.errors import EvolutionError, NotFoundError, UnsupportedError, ValidationError

LONG = "(select string_agg(md5((n * {})::text), '') from generate_series(1, 400) n)"
PLAIN = (
    "create table t (id int primary key, v int, b text)",
    "insert into t values (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three')",
)
LONGS = (
    "create table t (id int primary key, big text, v int, gone int)",
    f"insert into t values (1, {LONG.format(1)}, 1, 1), (2, {LONG.format(2)}, 2, 2)",
)
PARTS = (
    "create table t (id int, p text, v int, primary key (id, p)) partition by list (p)",
    "create table t_a partition of t for values in ('a')",
    "insert into t values (1, 'a', 1), (2, 'a', 2)",
)
CLUSTERED = "cluster t using t_pkey"


def same(database, source="t"):
    """Both sides have the same rows, under the names that PostgreSQL has."""
    names = [
        name
        for [name] in database.run(
            "select attname from pg_attribute where attnum > 0 and not attisdropped and "
            f"attgenerated = '' and attrelid = '{source}'::regclass order by attnum"
        )
    ]
    ours = database.table.to_df().select(*names).collect()
    theirs = database.run(f"select {', '.join(names)} from {source}")
    assert sorted(map(repr, map(tuple, ours))) == sorted(map(repr, map(tuple, theirs)))


FOLLOWED = {
    "one name for another column, and back": (
        PLAIN,
        "update t set b = 'x' where id = 1",
        "alter table t rename column b to d; alter table t drop column v",
        "alter table t add column b text",
        "update t set b = 'y' where id = 2",
        "alter table t rename column b to e",
        "insert into t values (4, 'four', 'z')",
    ),
    "renamed key": (
        PLAIN,
        "update t set v = 5 where id = 1",
        "alter table t rename column id to key",
        "update t set key = 7 where key = 2",
        "delete from t where key = 3",
    ),
    "names exchanged": (
        (
            "create table t (id int primary key, b text, c text)",
            "insert into t values (1, 'one', 'un'), (2, 'two', 'deux')",
        ),
        "update t set b = 'x' where id = 1",
        "alter table t rename column b to x; alter table t rename column c to b; "
        "alter table t rename column x to c",
        "insert into t values (9, 'nine', 'neuf')",
    ),
    "a default from later on": (
        PLAIN,
        "alter table t add column x int",
        "alter table t alter column x set default 5",
        "insert into t (id) values (4)",
    ),
    "long value, one goes and one comes": (
        LONGS,
        "update t set v = 10 where id = 1",
        "alter table t drop column gone",
        "update t set v = 11, big = big where id = 1",
        "alter table t add column x int",
        "update t set x = 5, id = 8 where id = 1",
    ),
    "long value, renamed": (
        LONGS,
        f"update t set big = {LONG.format(4)} where id = 1",
        "alter table t rename column big to large",
        "update t set v = 11 where id = 1",
        "update t set v = 12 where id = 2",
    ),
    "identity full and back": (
        LONGS,
        "alter table t replica identity full",
        f"update t set big = {LONG.format(6)} where id = 1",
        "alter table t replica identity default",
        "update t set v = 2 where id = 1",
        "alter table t replica identity using index t_pkey",
        "update t set v = 3, id = 5 where id = 2",
    ),
    "included in the key's index": (
        (
            "create table t (id int, v int, primary key (id) include (v))",
            "insert into t values (1, 1), (2, 2)",
        ),
        "update t set v = 3 where id = 1",
        "reindex table concurrently t",
        "delete from t where id = 2",
    ),
    "vacuum full and cluster": (
        PLAIN,
        "update t set v = 5 where id = 1",
        "vacuum full t",
        "delete from t where id = 2",
        CLUSTERED,
        "insert into t values (4, 4, 'four')",
    ),
    "truncated": (PLAIN, "truncate t", "insert into t values (4, 4, 'four')"),
    "wider": (
        PLAIN,
        "update t set v = 5 where id = 1",
        "alter table t alter column v type bigint",
        "update t set v = 5000000000 where id = 2",
    ),
    "wider without a rewrite": (
        (
            "create table t (id int primary key, s varchar(5), n numeric(5, 2))",
            "insert into t values (1, 'a', 1.25), (2, 'b', 2.50)",
        ),
        "alter table t alter column s type text, alter column n type numeric(9, 2)",
        "update t set s = 'longer than five', n = 1234567.25 where id = 1",
    ),
    "a partition is made": (
        PARTS,
        "create table t_b partition of t for values in ('b')",
        "insert into t values (3, 'b', 3)",
        "alter table t add column x int",
        "update t set x = 4, p = 'b' where id = 1",
    ),
    "an empty partition comes and another goes": (
        PARTS,
        "create table t_b (like t including all)",
        "alter table t attach partition t_b for values in ('b')",
        "insert into t values (3, 'b', 3)",
        "delete from t where p = 'a'",
        "drop table t_a",
    ),
    "partitions truncated together": (PARTS, "truncate t", "insert into t values (3, 'a', 3)"),
    "published anew": (
        PLAIN,
        "update t set v = 5 where id = 1",
        "alter publication {slot} drop table t",
        "alter publication {slot} add table t",
        "update t set v = 6 where id = 2",
    ),
}
QUICK = ("long value, one goes and one comes", "a partition is made")


@pytest.mark.check
@pytest.mark.parametrize("case", [c if c in QUICK else only_in_soak(c) for c in FOLLOWED])
def test_what_is_followed_exactly(database, case):
    before, *after = FOLLOWED[case]
    database.run(*before)
    database.drain(partition_by=("p",) if before is PARTS else ())
    database.run(*[each.format(slot=database.slot) for each in after])
    database.drain(batch_rows=2)
    same(database)
    # Now it is what the table knows, and goes on from there.
    count = len(database.table.metadata.snapshots)
    database.drain()
    assert len(database.table.metadata.snapshots) == count
    [name] = database.run(
        "select attname from pg_attribute where attrelid = 't'::regclass and attnum = 1"
    )[0]
    database.run(f"update t set {name} = {name} + 100")
    database.drain()
    same(database)


GENERATED = (
    "create table t (id int primary key, v int, g int generated always as (v * 2) stored)",
    "insert into t (id, v) values (1, 1), (2, 2), (3, 3)",
)

STOPPED = {
    "a default": (PLAIN, "with a default", "alter table t add column n int default 5"),
    "another type": (PLAIN, "v", "alter table t alter column v type text"),
    "a refused type": (PLAIN, "interval", "alter table t add column n interval"),
    "a default that is computed": (
        PLAIN,
        "new columns",
        "alter table t add column x float8 default random()",
    ),
    "a default of before a rewrite": (
        PLAIN,
        "has new columns",
        "alter table t add column x int default 5",
        "alter table t alter column x drop default",
        "vacuum full t",
    ),
    "changed by its rewrite as wider": (
        PLAIN,
        "rewritten, and its column v changed",
        "alter table t alter column v type bigint using v * 2",
    ),
    "another column of the name": (
        PLAIN,
        "keeps the values of the one that is gone",
        "alter table t drop column b",
        "alter table t add column b text",
    ),
    "which of two cannot be told": (
        PLAIN,
        "which column is which cannot be told",
        "update t set v = 7 where id = 2",
        # A transaction within the transaction: its own id is nowhere in the log.
        "begin; savepoint s; alter table t drop column b; release s; commit",
        "alter table t add column c text",
    ),
    "no longer generated": (
        GENERATED,
        "was not in the log before",
        "alter table t alter column g drop expression",
    ),
    "another key": (
        PLAIN,
        "another key",
        "alter table t drop constraint t_pkey",
        "alter table t add primary key (v)",
    ),
    "without a key for a while": (
        (*PLAIN, "alter table t replica identity full"),
        "another key",
        "alter table t drop constraint t_pkey",
        "insert into t values (1, 1, 'twice')",
        "delete from t where b = 'twice'",
        "alter table t add primary key (id)",
    ),
    "without identity for a while": (
        PLAIN,
        r"another key \(none\)",
        "alter table t replica identity nothing",
        "insert into t values (7, 7, 'seven')",
        "alter table t replica identity default",
    ),
    "attached with rows": (
        PARTS,
        "t_b was attached",
        "create table t_b (like t including all)",
        "insert into t_b values (9, 'b', 9)",
        "alter table t attach partition t_b for values in ('b')",
    ),
    "attached with rows in one transaction": (
        PARTS,
        "t_b was attached",
        "begin; create table t_b (like t including all); insert into t_b values (9, 'b', 9); "
        "alter table t attach partition t_b for values in ('b'); commit",
    ),
    "a partition dropped": (
        (*PARTS, "create table t_b partition of t for values in ('b')"),
        "dropped or detached",
        "insert into t values (9, 'b', 9)",
        "drop table t_a",
    ),
    "a partition truncated": (PARTS, "t_a was truncated", "truncate t_a"),
    "a partition apart for a while": (
        PARTS,
        "detached and attached",
        "alter table t detach partition t_a",
        "delete from t_a where id = 2",
        "alter table t attach partition t_a for values in ('a')",
    ),
    "not published for a while": (
        PLAIN,
        "publication was changed",
        "alter publication {slot} drop table t",
        "update t set v = 6 where id = 2",
        "alter publication {slot} add table t",
    ),
    "not logged for a while": (
        (*PLAIN, "create publication {slot} for all tables"),
        "UNLOGGED",
        "alter table t set unlogged",
        "update t set v = 6 where id = 2",
        "alter table t set logged",
    ),
}
QUICK_STOPS = ("a refused type",)
NEVER_LOADED = ("another type", "a refused type")
"""What no load takes either: the table keeps its type, and PostgreSQL's has none here."""


@pytest.mark.check
@pytest.mark.parametrize("case", [c if c in QUICK_STOPS else only_in_soak(c) for c in STOPPED])
def test_what_stops_and_can_be_loaded_again(database, case):
    before, said, *after = STOPPED[case]
    database.run(*[each.format(slot=database.slot) for each in before])
    rows = database.drain().to_df().collect()
    database.run(*[each.format(slot=database.slot) for each in after])
    # An event behind it, as any would be.
    database.run("update t set id = id + 10 where id = 1")
    for _ in range(2):
        with pytest.raises((ValidationError, UnsupportedError), match=said):
            database.drain()
        assert sorted(database.table.to_df().collect()) == sorted(rows)
    if case in NEVER_LOADED:
        return
    database.drain(loads_again=True)
    same(database)
    database.run("delete from t where id = 11")
    database.drain()
    same(database)


@pytest.mark.check
def test_what_stops_goes_on_after_the_word_of_its_message(database):
    database.run(*PLAIN)
    name = "write.spark.auto-schema-evolution.enabled"
    database.drain().set_properties({name: "false"})
    database.run("alter table t add column c int", "insert into t values (9, 9, 'nine', 9)")
    with pytest.raises(EvolutionError, match="auto-schema-evolution"):
        database.drain()
    database.table.remove_properties(name)
    database.drain()
    same(database)
    database.run(
        "update t set v = 7 where id = 1",
        "alter table t drop column b",
        "alter table t add column b text",
        "update t set b = 'new' where id = 2",
    )
    with pytest.raises(EvolutionError, match="Rename or drop the table's column"):
        database.drain()
    with database.table.update_schema() as change:
        change.rename_column("b", "b_until_may")
    database.drain()
    same(database)
    kept = [row["b_until_may"] for row in database.table.to_df().sort("id").collect()]
    assert kept == ["one", None, "three", "nine"]


@pytest.mark.check
def test_another_table_under_the_name(database):
    database.run(*PLAIN)
    database.drain()
    database.run(
        "create table new (id int primary key, v int, b text)",
        "insert into new values (1, 10, 'other')",
        "begin; alter table t rename to old; alter table new rename to t; commit",
        "update old set v = 7 where id = 1",
    )
    with pytest.raises(ValidationError, match=r"another table .* --source public\.old"):
        database.drain()
    database.drain(source="public.old")
    same(database, "old")
    database.run("create schema s", "alter table old set schema s", "alter schema s rename to s2")
    with pytest.raises(NotFoundError, match=r"--source s2\.old"):
        database.drain(source="public.old")
    database.run("update s2.old set v = 8 where id = 1")
    database.drain(source="s2.old")
    same(database, "s2.old")
    database.run("drop table s2.old")
    with pytest.raises(NotFoundError, match="was dropped"):
        database.drain(source="s2.old")
    database.run(f"alter publication {database.slot} add table t")
    with pytest.raises(ValidationError, match="--load-again"):
        database.drain()
    database.drain(loads_again=True)
    same(database)


class Meanwhile(threading.Thread):
    """Runs statements once a query of the server has a row."""

    def __init__(self, database, when, *statements):
        super().__init__()
        self.database, self.when, self.statements = database, when, statements
        self.is_seen = False
        self.start()

    def run(self):
        with psycopg.connect(self.database.dsn, autocommit=True) as connection:
            until = time.monotonic() + 60
            while not (self.is_seen or time.monotonic() > until):
                self.is_seen = connection.execute(self.when).fetchone() is not None
                time.sleep(0.002)
        for statement in self.statements:
            self.database.run(statement)


SLOT = (
    "select 1 from pg_replication_slots where slot_name = '{slot}' and confirmed_flush_lsn > '0/0'"
)
LOCKED = "select 1 from pg_locks where relation = 't'::regclass and mode = 'AccessShareLock'"
# The load holds one lock, and each of its tasks another one from before it reads until it has read.
READ = f"{LOCKED} having count(*) > 1"

BESIDE = {
    "moved while it is read": (READ, "vacuum full t"),
    "moved once it is locked": (LOCKED, "vacuum full t", "delete from t where id = 3"),
    "another column behind the slot": (
        SLOT,
        "alter table t add column x int",
        "update t set x = 1",
        "alter table t drop column b",
    ),
}


@pytest.mark.check
@pytest.mark.parametrize(
    "case", [only_in_soak(c) if c != "moved while it is read" else c for c in BESIDE]
)
def test_a_load_beside_what_moves_its_rows(database, monkeypatch, case):
    monkeypatch.setattr(frazil.cdc.initial, "PAGES_A_TASK", 200)
    monkeypatch.setattr(frazil.cdc.initial, "LOCK_SECONDS", 1)
    when, *statements = BESIDE[case]
    database.run(
        "create table t (id int primary key, v int, b text) with (autovacuum_enabled = off)",
        "insert into t select i, i, repeat('x', 1000) from generate_series(1, 21000) i",
        "delete from t where id % 3 <> 0",
    )
    meanwhile = Meanwhile(database, when.format(slot=database.slot), *statements)
    # It gives way to what waits for it, and begins again.
    database.drain()
    meanwhile.join(60)
    assert meanwhile.is_seen
    assert not meanwhile.is_alive()
    database.drain()
    same(database)


@pytest.mark.check
def test_a_load_beside_an_open_transaction(database):
    database.run(*PLAIN, f"create publication {database.slot} for table t")
    with psycopg.connect(database.dsn) as other:
        other.execute("alter table t add column x int")
        other.execute("update t set x = id * 10")
        waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
        meanwhile = Meanwhile(database, waits)
        done = threading.Thread(target=lambda: (meanwhile.join(), other.commit()))
        done.start()
        database.drain()
        done.join()
    assert meanwhile.is_seen
    same(database)
    database.run("insert into t values (4, 4, 'four', 40)")
    database.drain()
    same(database)
