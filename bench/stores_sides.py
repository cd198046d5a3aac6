"""The operations of the group `stores`, and the two sides that do them on one server of S3."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from pyspark.sql import SparkSession
from tests.s3_counted import CountedStore

import frazil

FLAT: Final = "id INT, p INT, v STRING"
NESTED: Final = "id INT, p INT, s STRUCT<x: INT, y: STRING>, l ARRAY<INT>, m MAP<STRING, INT>"
NESTED_ROWS: Final = (
    "int(id) id, int(id % 8) p, struct(int(id) AS x, string(id) AS y) s, array(int(id), 1) l, "
    "map('k', int(id)) m"
)
MERGED: Final = (
    "(SELECT int(id * 3) id, int(id * 3 % 8) p, 'm' v FROM range(10)) s "
    "ON t.id = s.id AND t.p = s.p "
    "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
)
ON_READ: Final = {"write.delete.mode": "merge-on-read", "write.merge.mode": "merge-on-read"}
MANY_ROWS: Final = 300_000
TIMES_MORE: Final = 6
LONG: Final = "int(id) id, 0 p, concat(sha2(string(id), 512), sha2(string(-id), 512)) v"
LONG_ROWS: Final = 900_000
"""They come to one file of some 128 MB."""


class Side(Protocol):
    """What runs statements.

    Attributes:
        name: of the side.
        listing: what a search for orphan files is told besides of how to list files.
        folder: where catalogs and checkpoints lie; its name is the bucket's.
    """

    name: str
    listing: str
    folder: Path

    def begin(self) -> None:
        """Open the catalog anew, with nothing in memory."""

    def sql(self, text: str) -> Any:
        """Run a statement; a DataFrame of what it returns."""

    def call(self, text: str) -> Any:
        """Run a procedure."""

    def load(self, table: str) -> object:
        """Load a table."""

    def stream(self, table: str, checkpoint: str) -> Any:
        """A stream of a table's rows."""


class Ours:
    """Frazil, whose catalog is a database beside the store; its bucket is named as its folder."""

    name = "Frazil"
    listing = ""

    def __init__(self, spark: SparkSession, store: CountedStore, folder: Path) -> None:
        self._spark, self._store, self.folder = spark, store, folder
        set_s3a(spark, store)
        self.begin()

    def begin(self) -> None:
        """Connect anew."""
        self._lake = frazil.connect(
            self._spark,
            name="stores",
            uri=f"sqlite:///{self.folder}/ours.db",
            warehouse=f"s3://{self.folder.name}/ours",
            **self._store.properties,
        )

    def sql(self, text: str) -> Any:
        """Run a statement."""
        return self._lake.sql(text)

    def call(self, text: str) -> Any:
        """Run a procedure."""
        return self._lake.call(text)

    def load(self, table: str) -> object:
        """Load a table."""
        return self._lake.load_table(table)

    def stream(self, table: str, checkpoint: str) -> Any:
        """A stream of a table's rows."""
        return self._lake.read_stream(table, checkpoint=checkpoint)


class OursByHadoop(Ours):
    """Frazil, whose files Hadoop's s3a reads and writes, metadata too."""

    name = "Frazil, io=hadoop"

    def begin(self) -> None:
        """Connect anew."""
        self._lake = frazil.connect(
            self._spark,
            name="hadoop",
            uri=f"sqlite:///{self.folder}/hadoop.db",
            warehouse=f"s3a://{self.folder.name}/hadoop",
            io="hadoop",
        )


def set_s3a(spark: SparkSession, store: CountedStore) -> None:
    """Tell Hadoop's s3a of the store."""
    settings = {
        "endpoint": store.endpoint,
        "endpoint.region": store.properties["s3.region"],
        "access.key": store.properties["s3.access-key-id"],
        "secret.key": store.properties["s3.secret-access-key"],
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
    }
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in settings.items():
        hadoop.set(f"fs.s3a.{name}", value)


class Theirs:
    """The Java runtime over Hadoop's s3a."""

    name = "Java"
    listing = ""
    _named = "theirs"

    def __init__(self, spark: SparkSession, store: CountedStore, folder: Path) -> None:
        self._first, self._store, self.folder = spark, store, folder
        set_s3a(spark, store)
        self.begin()

    def begin(self) -> None:
        """Make a session, and with it the catalog."""
        self._spark = self._first.newSession()
        for name, value in self._catalog().items():
            self._spark.conf.set(f"spark.sql.catalog.{self._named}{name}", value)
        self._spark.sql(f"USE {self._named}")

    def _catalog(self) -> dict[str, str]:
        return {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "jdbc",
            ".uri": f"jdbc:sqlite:{self.folder}/{self._named}.db",
            ".jdbc.schema-version": "V1",
            ".warehouse": f"s3a://{self.folder.name}/{self._named}",
        }

    def sql(self, text: str) -> Any:
        """Run a statement."""
        return self._spark.sql(text)

    call = sql

    def load(self, table: str) -> object:
        """Load a table."""
        return self._spark.table(f"{self._named}.{table}").schema

    def stream(self, table: str, checkpoint: str) -> Any:
        """A stream of a table's rows."""
        return self._spark.readStream.format("iceberg").load(f"{self._named}.{table}")


class TheirsByFileIO(Theirs):
    """The Java runtime over its own S3FileIO."""

    name = "Java, S3FileIO"
    listing = ", prefix_listing => true"
    _named = "fileio"

    def _catalog(self) -> dict[str, str]:
        properties = self._store.properties
        return super()._catalog() | {
            ".warehouse": f"s3://{self.folder.name}/{self._named}",
            ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            ".client.region": properties["s3.region"],
            ".s3.endpoint": self._store.endpoint,
            ".s3.path-style-access": "true",
            ".s3.access-key-id": properties["s3.access-key-id"],
            ".s3.secret-access-key": properties["s3.secret-access-key"],
        }


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the table.

    Attributes:
        do: what is counted; rows that it returns must be the same on both sides.
        before: what is not counted.
    """

    do: Callable[[Side], object]
    before: Callable[[Side], object] = lambda _: None


def make_table(side: Side, name: str, columns: str, *, inserts: int, **properties: str) -> None:
    """A table of eight partitions, with a file of each from every insert."""
    stated = {"format-version": "2", **properties}
    listed = ", ".join(f"'{key}'='{value}'" for key, value in stated.items())
    side.sql(
        f"CREATE TABLE db.{name} ({columns}) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ({listed})"
    )
    for number in range(inserts):
        side.sql(
            f"INSERT INTO db.{name} SELECT int(id) id, int(id % 8) p, string(id) v "
            f"FROM range({number * 80}, {number * 80 + 80})"
        )


def _rows(side: Side, text: str) -> list[str]:
    return sorted(map(repr, side.sql(text).collect()))


def _first_version(side: Side) -> list[str]:
    found = side.sql("SELECT snapshot_id FROM db.t.snapshots ORDER BY committed_at LIMIT 1")
    return _rows(side, f"SELECT * FROM db.t VERSION AS OF {found.collect()[0][0]}")


def _stream(side: Side) -> None:
    checkpoint = str(side.folder / f"checkpoint-{side.name}")
    query = (
        side.stream("db.t", checkpoint)
        .writeStream.foreachBatch(lambda rows, _: rows.collect())
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    if not query.awaitTermination(200):
        raise TimeoutError(f"the stream of {side.name} does not end")


def _soon() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + 60))


def _merge(table: str) -> Callable[[Side], object]:
    return lambda side: side.sql(f"MERGE INTO db.{table} t USING {MERGED}")


def operations() -> Mapping[str, Operation]:
    """Every row of the table; each finds the tables as those before it have left them."""
    one_file = "INSERT INTO db.t VALUES (1000, 1, 'x')"
    eight_files = (
        "INSERT INTO db.t SELECT int(id) id, int(id % 8) p, string(id) v FROM range(2000, 2080)"
    )
    return {
        "connect and load a table": Operation(lambda s: (s.begin(), s.load("db.t"))[:0]),
        "connect and read 24 files": Operation(
            lambda s: _rows(s, "SELECT * FROM db.t"), lambda s: s.begin()
        ),
        "read all, again": Operation(lambda s: _rows(s, "SELECT * FROM db.t")),
        "read one partition": Operation(lambda s: _rows(s, "SELECT * FROM db.t WHERE p = 3")),
        "connect and read one partition": Operation(
            lambda s: _rows(s, "SELECT * FROM db.t WHERE p = 3"), lambda s: s.begin()
        ),
        "count of all rows": Operation(lambda s: _rows(s, "SELECT count(*) FROM db.t")),
        "time travel": Operation(_first_version),
        "metadata table of files": Operation(
            lambda s: len(_rows(s, "SELECT file_path FROM db.t.files"))
        ),
        "append of 1 file": Operation(lambda s: s.sql(one_file)),
        "connect and append 1 file": Operation(lambda s: s.sql(one_file), lambda s: s.begin()),
        "append into 8 partitions": Operation(lambda s: s.sql(eight_files)),
        "stream, first run": Operation(_stream),
        "stream, 1 file more": Operation(_stream, lambda s: s.sql(one_file)),
        "nested types: append of 1 file": Operation(
            lambda s: s.sql(f"INSERT INTO db.n SELECT {NESTED_ROWS} FROM range(3, 4)"),
            lambda s: make_table(s, "n", NESTED, inserts=0),
        ),
        "nested types: append into 8 partitions": Operation(
            lambda s: s.sql(f"INSERT INTO db.n SELECT {NESTED_ROWS} FROM range(80)")
        ),
        "nested types: read all": Operation(lambda s: _rows(s, "SELECT id, s, l FROM db.n")),
        "delete of 3 rows, merge-on-read": Operation(
            lambda s: s.sql("DELETE FROM db.d WHERE id IN (3, 11, 100)"),
            lambda s: make_table(s, "d", FLAT, inserts=1, **ON_READ),
        ),
        "read after deletes": Operation(lambda s: _rows(s, "SELECT * FROM db.d")),
        "merge of 10 rows, merge-on-read": Operation(_merge("d")),
        "merge of 10 rows, copy-on-write": Operation(
            _merge("c"), lambda s: make_table(s, "c", FLAT, inserts=1)
        ),
        "update of 1 row, copy-on-write": Operation(
            lambda s: s.sql("UPDATE db.c SET v = 'u' WHERE id = 5")
        ),
        "delete of a partition": Operation(lambda s: s.sql("DELETE FROM db.c WHERE p = 7")),
        "rewrite manifests": Operation(
            lambda s: s.call("CALL system.rewrite_manifests('db.t')").collect()[:0]
        ),
        "compaction": Operation(
            lambda s: s.call(
                "CALL system.rewrite_data_files(table => 'db.t', "
                "options => map('min-input-files', '2'))"
            ).collect()[:0]
        ),
        "orphan files, dry run": Operation(
            lambda s: s.call(
                f"CALL system.remove_orphan_files(table => 'db.t', dry_run => true{s.listing})"
            ).collect()[:0]
        ),
        "expiry of all snapshots but one": Operation(
            lambda s: s.call(
                f"CALL system.expire_snapshots(table => 'db.t', "
                f"older_than => TIMESTAMP '{_soon()}', retain_last => 1)"
            ).collect()[:0]
        ),
        "drop and purge": Operation(lambda s: s.sql("DROP TABLE db.c PURGE")),
        "nested types: append of 300 000 rows": Operation(
            lambda s: s.sql(f"INSERT INTO db.m SELECT {NESTED_ROWS} FROM range({MANY_ROWS})"),
            lambda s: make_table(s, "m", NESTED, inserts=0),
        ),
        "append of 300 000 rows": Operation(
            lambda s: s.sql(
                f"INSERT INTO db.f SELECT int(id) id, int(id % 8) p, string(id) v "
                f"FROM range({MANY_ROWS})"
            ),
            lambda s: make_table(s, "f", FLAT, inserts=0),
        ),
        "read of 300 000 rows": Operation(lambda s: _rows(s, "SELECT count(v), sum(id) FROM db.f")),
        "nested types: append of 1 800 000 rows": Operation(
            lambda s: s.sql(
                f"INSERT INTO db.m SELECT {NESTED_ROWS} FROM range({TIMES_MORE * MANY_ROWS})"
            )
        ),
        "append of 1 800 000 rows": Operation(
            lambda s: s.sql(
                f"INSERT INTO db.f SELECT int(id) id, int(id % 8) p, string(id) v "
                f"FROM range({TIMES_MORE * MANY_ROWS})"
            )
        ),
        "read of 2 100 000 rows": Operation(
            lambda s: _rows(s, "SELECT count(v), sum(id) FROM db.f")
        ),
        "append of a file of 128 MB": Operation(
            lambda s: s.sql(f"INSERT INTO db.l SELECT {LONG} FROM range(0, {LONG_ROWS}, 1, 1)"),
            lambda s: make_table(s, "l", FLAT, inserts=0),
        ),
        "read of a file of 128 MB": Operation(
            lambda s: _rows(s, "SELECT count(v), max(v) FROM db.l")
        ),
        "read 1 000 rows of a file of 128 MB": Operation(
            lambda s: _rows(s, "SELECT count(v), max(v) FROM db.l WHERE id BETWEEN 5000 AND 5999")
        ),
        "read one column of a file of 128 MB": Operation(
            lambda s: _rows(s, "SELECT sum(id) FROM db.l")
        ),
        # Of all sizes, and not of small files alone.
        "read 1 000 rows of a file of 128 MB, whole-files=1g": Operation(
            lambda s: _rows(s, "SELECT count(v), max(v) FROM db.l WHERE id BETWEEN 5000 AND 5999"),
            lambda s: s.sql(f"SET `frazil.read.whole-files`={1 << 30}"),
        ),
        "read one column of a file of 128 MB, whole-files=1g": Operation(
            lambda s: _rows(s, "SELECT sum(id) FROM db.l"),
            # Longer than the reader keeps what it has read.
            lambda _: time.sleep(8),
        ),
    }
