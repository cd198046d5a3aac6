"""Frazil and the Java runtime take turns on one table: one history, the same rows for both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from interop_java import java_table

from ci_share import only_in_interop, only_in_soak
from frazil.spark.lake import Lake

Pair = tuple[int, str | None]


@dataclass(slots=True)
class Shared:
    """A table that both write.

    Attributes:
        table: Frazil's handle.
        name: its name in Spark SQL, of the Java runtime's catalog.
    """

    spark: Any
    table: Any
    name: str

    def frame(self, *rows: Pair) -> Any:
        """Rows as a DataFrame."""
        return self.spark.createDataFrame(list(rows), "id int, v string").coalesce(1)

    def java(self, statement: str) -> list[Any]:
        """Run SQL in which ``{t}`` is the table."""
        return list(self.spark.sql(statement.format(t=self.name)).collect())

    def call(self, procedure: str) -> list[Any]:
        """Call a procedure of the Java runtime; ``{t}`` is the table."""
        catalog, _, short = self.name.partition(".")
        text = procedure.format(t=f"table => '{short}'")
        return list(self.spark.sql(f"call {catalog}.system.{text}").collect())

    def check(self, *expected: Pair) -> None:
        """Both read these rows, and tell the same history."""
        metadata = self.table.refresh().metadata
        wanted = sorted(expected, key=repr)
        ours = [(row.id, row.v) for row in self.table.scan(columns=["id", "v"]).to_df().collect()]
        theirs = [(row.id, row.v) for row in self.java("select id, v from {t}")]
        assert sorted(ours, key=repr) == wanted
        assert sorted(theirs, key=repr) == wanted
        theirs_now = java_table(self.spark, self.name)
        assert [
            (s.snapshotId(), s.parentId(), s.sequenceNumber(), s.operation())
            for s in theirs_now.snapshots()
        ] == [
            (s.snapshot_id, s.parent_snapshot_id, s.sequence_number, s.summary["operation"])
            for s in metadata.snapshots
        ]
        assert [entry.snapshotId() for entry in theirs_now.history()] == [
            entry.snapshot_id for entry in metadata.snapshot_log
        ]
        numbers = [snapshot.sequence_number for snapshot in metadata.snapshots]
        if metadata.format_version > 1:
            assert numbers == sorted(numbers)
            assert metadata.last_sequence_number == max(numbers)
        assert self.table.scan().count() == len(expected)

    def check_metadata_tables(self) -> None:
        """The Java runtime's metadata tables over the current metadata agree with Frazil's."""
        for name in ("files", "manifests", "snapshots", "history", "refs", "partitions", "entries"):
            ours = getattr(self.table.inspect.dataframes, name)()
            count = ours.count() if hasattr(ours, "collect") else len(ours)
            assert count == len(self.java(f"select * from {{t}}.{name}")), name
        partitions = self.java("select * from {t}.partitions")
        files = self.java("select * from {t}.files where content = 0")
        assert sum(row.record_count for row in partitions) == sum(f.record_count for f in files)
        assert sum(row.file_count for row in partitions) == len(files)


CATALOGS = {"sql": "java_sql", "hadoop": "java_hadoop"}
CASES = [
    *(only_in_soak(("sql", version)) for version in (1, 2)),
    ("sql", 3),
    only_in_interop(("hadoop", 2)),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-v{case[1]}")
def shared(request: pytest.FixtureRequest, spark: Any, sql_lake: Lake, hadoop_lake: Lake) -> Shared:
    """An empty partitioned table; the catalogs take turns in who makes it."""
    kind, version = request.param
    lake = sql_lake if kind == "sql" else hadoop_lake
    short = f"db.turns_{request.node.name.split('[')[0][5:20]}_{version}"
    name = f"{CATALOGS[kind]}.{short}"
    if kind == "hadoop" or version == 1:
        spark.sql(
            f"create table {name} (id int, v string) using iceberg "
            f"partitioned by (bucket(3, id)) tblproperties ('format-version' = '{version}')"
        )
    else:
        lake.create_table(
            short, "id int, v string", partition_by=["bucket(3, id)"], format_version=version
        )
    return Shared(spark, lake.load_table(short), name)


def test_appends_and_evolution_in_turns(shared: Shared) -> None:
    shared.table.append(shared.frame((1, "a"), (2, None)))
    rows: list[Pair] = [(1, "a"), (2, None)]
    shared.check(*rows)

    shared.java("insert into {t} values (3, 'c'), (4, null)")
    rows += [(3, "c"), (4, None)]
    shared.check(*rows)

    with shared.table.update_spec() as change:
        change.add_field("truncate(1, v)")
    with shared.table.update_schema() as schema:
        schema.add_column("extra", "long")
    shared.java("insert into {t} values (5, 'e', 50)")
    rows += [(5, "e")]
    shared.check(*rows)

    shared.java("alter table {t} drop partition field bucket(3, id)")
    shared.java("alter table {t} add column more string")
    shared.table.append(shared.frame((6, "f"), (7, None)))
    rows += [(6, "f"), (7, None)]
    shared.check(*rows)

    shared.java("delete from {t} where id = 3")
    rows.remove((3, "c"))
    shared.check(*rows)

    shared.table.overwrite(shared.frame((8, "h")), where="id = 4")
    rows.remove((4, None))
    rows += [(8, "h")]
    shared.check(*rows)

    shared.frame((5, "E"), (9, "i")).createOrReplaceTempView("changes")
    shared.java(
        "merge into {t} using changes on {t}.id = changes.id "
        "when matched then update set v = changes.v "
        "when not matched then insert (id, v) values (changes.id, changes.v)".replace(
            "{t}.id", "target.id"
        ).replace("into {t}", "into {t} as target")
    )
    rows.remove((5, "e"))
    rows += [(5, "E"), (9, "i")]
    shared.check(*rows)
    shared.check_metadata_tables()

    shared.call("rewrite_manifests({t}, use_caching => false)")
    shared.check(*rows)
    shared.table.append(shared.frame((10, "j")))
    rows += [(10, "j")]
    shared.check(*rows)

    shared.call("rewrite_data_files({t}, options => map('min-input-files', '2'))")
    shared.check(*rows)
    shared.check_metadata_tables()

    kept = shared.table.metadata.current_snapshot_id
    shared.call("expire_snapshots({t}, older_than => timestamp '2999-01-01', retain_last => 1)")
    shared.check(*rows)
    assert [s.snapshot_id for s in shared.table.metadata.snapshots] == [kept]
    shared.table.append(shared.frame((11, "k")))
    rows += [(11, "k")]
    shared.check(*rows)
    shared.table.maintenance.expire_snapshots(older_than="2999-01-01", retain_last=1)
    shared.check(*rows)
    shared.check_metadata_tables()


def test_branches_and_tags(shared: Shared) -> None:
    shared.table.append(shared.frame((1, "a")))
    shared.table.create_tag("ours")
    shared.table.create_branch("audit")
    shared.table.append(shared.frame((2, "b")), branch="audit")
    shared.java("insert into {t} values (3, 'c')")
    shared.java("alter table {t} create tag `theirs`")
    shared.java("alter table {t} create branch `staged`")
    shared.java("insert into {t}.branch_staged values (4, 'd')")
    shared.table.refresh()
    shared.table.append(shared.frame((5, "e")))

    expected = {
        "ours": [1],
        "audit": [1, 2],
        "theirs": [1, 3],
        "staged": [1, 3, 4],
        "main": [1, 3, 5],
    }
    for ref, ids in expected.items():
        ours = shared.table.scan(ref=ref, columns=["id"]).to_df().collect()
        theirs = shared.java(f"select id from {{t}} version as of '{ref}'")
        assert sorted(row.id for row in ours) == ids, ref
        assert sorted(row.id for row in theirs) == ids, ref
    refs = shared.java("select name, type, snapshot_id from {t}.refs")
    assert {row.name: (row.type.lower(), row.snapshot_id) for row in refs} == {
        name: (ref.type, ref.snapshot_id) for name, ref in shared.table.metadata.refs.items()
    }
    first = shared.table.metadata.snapshots[0].snapshot_id
    assert [row.id for row in shared.java(f"select id from {{t}} version as of {first}")] == [1]
    shared.table.fast_forward("main", "main")
    shared.table.rollback_to_snapshot(first)
    assert [row.id for row in shared.java("select id from {t}")] == [1]


def test_row_lineage(spark: Any, sql_lake: Lake) -> None:
    table = sql_lake.create_table(
        "db.lineage", "id int, v string", partition_by=["bucket(2, id)"], format_version=3
    )
    shared = Shared(spark, table, "java_sql.db.lineage")
    table.append(shared.frame(*((number, "first") for number in range(6))))
    shared.java("insert into {t} values (6, 'second'), (7, 'second')")
    table.refresh()
    table.append(shared.frame((8, "third")))

    def lineage() -> dict[int, tuple[int, int]]:
        query = "select id, _row_id, _last_updated_sequence_number from {t}"
        theirs = {row[0]: (row[1], row[2]) for row in shared.java(query)}
        columns = ["id", "_row_id", "_last_updated_sequence_number"]
        rows = table.refresh().scan(columns=columns).to_df().collect()
        assert {row[0]: (row[1], row[2]) for row in rows} == theirs
        return theirs

    before = lineage()
    assert sorted(row_id for row_id, _ in before.values()) == list(range(9))
    assert [before[number][1] for number in range(9)] == [1] * 6 + [2] * 2 + [3]
    assert table.metadata.next_row_id == 9

    shared.java("update {t} set v = 'changed' where id = 2")
    after_java = lineage()
    assert after_java[2] == (before[2][0], 4)
    assert all(after_java[n] == before[n] for n in before if n != 2)

    shared.table.overwrite(shared.frame((20, "new")), where="id = 3")
    after = lineage()
    assert all(after[number] == after_java[number] for number in after if number != 20)
    assert after[20][1] == 5
    assert after[20][0] not in {row_id for row_id, _ in after_java.values()}

    shared.call("rewrite_data_files({t}, options => map('rewrite-all', 'true'))")
    assert lineage() == after
