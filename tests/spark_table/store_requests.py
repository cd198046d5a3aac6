"""Statements on tables of S3, whose requests the store counts: a line for each of them."""

from __future__ import annotations

import json
import sys

import pyarrow as pa
from pyspark import TaskContext

import frazil
from frazil.errors import StorageError
from frazil.spark.write.files import write_data_files
from frazil.spark.write.row_count import ExpectedRows
from frazil.storage.files import FileIO
from s3_counted import Fault, counted_s3
from s3_spark import spark_on

ROWS = "SELECT int(id) id, int(id % 8) p, string(id) v FROM range(80)"
NESTED = "SELECT int(id) id, int(id % 8) p, struct(int(id) AS x) s FROM range({})"
TABLE = (
    "CREATE TABLE db.{} ({}) USING iceberg PARTITIONED BY (p) TBLPROPERTIES "
    "('write.delete.mode'='merge-on-read', 'write.merge.mode'='merge-on-read')"
)
MERGE = (
    "MERGE INTO db.t t USING (SELECT int(id * 3) id, int(id * 3 % 8) p, 'm' v FROM range(10)) s "
    "ON t.id = s.id AND t.p = s.p WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN "
    "INSERT *"
)
READ = "SELECT * FROM db.t"


def check_nested(lake):
    """Parts of columns are found by the ids in the files, whatever their names are by now."""
    for table, rows in (("n", 160), ("m", 400_000)):
        lake.sql(f"ALTER TABLE db.{table} RENAME COLUMN s.x TO y")
        [found] = lake.sql(f"SELECT count(*), sum(s.y) - sum(id) FROM db.{table}").collect()
        assert tuple(found) == (rows, 0), (table, found)


def check_cut_off_answers(lake, store):
    """What came before an answer was cut off is read once, and so is what comes after."""
    before = sorted(lake.sql(READ).collect())
    for keeps in (3, 200):
        store.fail(Fault(keeps=keeps, times=2, verb="GET", path="parquet$"))
        assert sorted(lake.sql(READ).collect()) == before
    store.fail()


def fails_once(batches):
    """The Python of each task; the first attempt fails at the end."""
    for batch in batches:
        yield pa.record_batch({"python": [sys.executable] * batch.num_rows})
    if TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("the first attempt fails")


class Refused(FileIO):
    """Writes nothing on executors."""

    def upload_unique(self, local, path):
        raise StorageError(f"no credentials for {path}")


def check_workers(spark, lake, given):
    """They run this Python, remove what failed, and what they may not write Spark writes."""
    table = lake.create_table("db.retried", "python string")
    table.append(spark.range(0, 40, 1, 2).mapInArrow(fails_once, "python string"))
    assert [row.python for row in table.to_df().collect()] == [sys.executable] * 40
    kept = {file.path for file in FileIO(given).list(table.location)}
    data = {path for path in kept if path.endswith(".parquet")}
    assert data == set(table.inspect.files()["file_path"]), data
    told, few = [], ExpectedRows(rows=16, partitions=8)
    rows = spark.sql("select int(id) id, int(id % 8) p, string(id) v from range(0, 16, 1, 1)")
    write_data_files(
        spark,
        rows,
        metadata=lake.load_table("db.t").metadata,
        io=Refused(given),
        expected=few,
        on_progress=told.append,
    )
    assert [each.writer.name for each in told] == ["Arrow", "Spark", "Spark", "Spark"], told
    assert told[-1].records == 16


def main(folder, settings):
    with counted_s3() as store:
        given = store.properties
        spark = spark_on(given, "local[2, 2]", json.loads(settings))
        place = store.new_bucket("lake")

        def opened():
            return frazil.connect(
                spark, uri=f"sqlite:///{folder}/c.db", warehouse=f"{place}/w", **given
            )

        lake = opened()
        lake.create_namespace("db")
        lake.sql(TABLE.format("t", "id INT, p INT, v STRING"))
        lake.sql(TABLE.format("n", "id INT, p INT, s STRUCT<x: INT>"))
        check_workers(spark, lake, given)
        for _ in range(3):
            lake.sql(f"INSERT INTO db.t {ROWS}")
        check_cut_off_answers(lake, store)
        count, again = "SELECT count(*) FROM db.t", opened()
        for name, statement in {
            "read again": lambda: lake.sql(READ).collect(),
            "first read": lambda: again.sql(READ).collect(),
            "first read of a partition": lambda: opened().sql(f"{READ} WHERE p = 3").collect(),
            "count": lambda: lake.sql(count).collect(),
            "files": lambda: opened().sql("SELECT file_path FROM db.t.files").collect(),
            "append of 1 file": lambda: lake.sql("INSERT INTO db.t VALUES (1000, 1, 'x')"),
            "append into 8 partitions": lambda: lake.sql(f"INSERT INTO db.t {ROWS}"),
            "first nested append": lambda: lake.sql(f"INSERT INTO db.n {NESTED.format(80)}"),
            "nested append": lambda: lake.sql(f"INSERT INTO db.n {NESTED.format(80)}"),
            "nested append of many rows": lambda: lake.sql(
                f"CREATE TABLE db.m USING iceberg PARTITIONED BY (p) AS {NESTED.format(400_000)}"
            ),
            "delete": lambda: lake.sql("DELETE FROM db.t WHERE id IN (3, 11)"),
            "merge": lambda: lake.sql(MERGE),
            "delete of a partition": lambda: lake.sql("DELETE FROM db.t WHERE p = 7"),
            "manifests": lambda: lake.call("CALL system.rewrite_manifests('db.t')").collect(),
            "compaction": lambda: lake.call(
                "CALL system.rewrite_data_files(table => 'db.t', "
                "options => map('min-input-files', '2'))"
            ).collect(),
            "orphans": lambda: lake.call(
                "CALL system.remove_orphan_files(table => 'db.t', dry_run => true)"
            ).collect(),
            "expiry": lambda: lake.load_table("db.t").maintenance.expire_snapshots(
                older_than="2999-01-01", retain_last=1
            ),
            "purge": lambda: lake.sql("DROP TABLE db.t PURGE"),
        }.items():
            store.take()
            statement()
            counted = store.take()
            print(json.dumps([name, len(counted), dict(counted.kinds)]))
        check_nested(lake)
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
