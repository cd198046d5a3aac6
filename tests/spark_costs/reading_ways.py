"""Reads: how deletes are applied, which files a query opens, what metadata tables are made from."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from tests.spark_costs.ways import (
    Case,
    Place,
    Work,
    count,
    entries_of,
    equality_delete,
    every_third,
    in_order,
    name_of,
    rows_of,
)

from frazil.format.predicates.expressions import AlwaysTrue
from frazil.spark.abilities import HAS_ARROW_FUNCTIONS
from frazil.spark.deletes.resolve import EQUALITY_SETTING
from frazil.spark.row_level.rivals.key_test import KeyTest
from frazil.spark.row_level.target import Target
from frazil.spark.session.facts import temporary_settings

ON_READ = {f"write.{command}.mode": "merge-on-read" for command in ("delete", "update", "merge")}
DELETES = "frazil.spark.deletes"
FRAMES = "frazil.spark.metadata_frames.frames"
JOINS = "frazil.spark.sql.pruning.joined_keys"


# -- deletes that a read applies -------------------------------------------------------------------


def deletes_by_key(
    place: Place,
    *,
    kind: str = "string",
    reading: str = "auto",
    keys: int = 20,
    rows: int = 100,
    files: int = 2,
    parts: int = 1,
) -> Work:
    """A read of rows of which each third of the first is deleted by its key.

    Args:
        kind: of the key, ``string`` or ``bigint``.
        reading: the session's setting.
        parts: files of deletes.
    """

    def make() -> Any:
        table = place.table(f"id bigint, k {kind}")
        key = "concat('n', id)" if kind == "string" else "id"
        table.append(place.spark.range(0, rows, 1, files).selectExpr("id", f"{key} as k"))
        deletes = [equality_delete(table, "k", each) for each in every_third(keys, parts, kind)]
        table.files.row_delta(added_deletes=deletes)
        return table

    table = place.once(("by key", kind, keys, rows, files, parts), make)

    def run() -> Any:
        with temporary_settings(place.spark, {EQUALITY_SETTING: reading}):
            return table.scan().to_df()

    def expected() -> Any:
        gone = set(range(0, 3 * keys, 3))
        key = (lambda n: f"n{n}") if kind == "string" else (lambda n: n)
        return in_order([(n, key(n)) for n in range(rows) if n not in gone])

    return Work(run, rows_of, expected)


def deletes_by_position(
    place: Place, *, rows: int = 300, files: int = 3, version: int = 2, is_explained: bool = False
) -> Work:
    """A read of rows of which each third is deleted by its position, as text or by vectors."""

    def make() -> Any:
        table = place.table("id bigint, v int", version=version, properties=ON_READ)
        table.append(place.spark.range(0, rows, 1, files).selectExpr("id", "int(id % 7) as v"))
        table.delete("id % 3 = 0")
        return table

    table = place.once(("by position", rows, files, version), make)

    def run() -> Any:
        scan = table.scan()
        if is_explained:
            scan.plan()
        return scan.to_df()

    return Work(run, rows_of, lambda: in_order([(n, n % 7) for n in range(rows) if n % 3]))


SMALL = {"SMALL_FILE_ROWS": 0}
"""No file is small: its deletes are not resolved beside the session."""

DELETED = [
    Case(
        figures={
            "SMALL_FILE_ROWS": lambda n: {"rows": n, "keys": n // 10, "files": 1},
            "SMALL_ROWS_HERE": lambda n: {"rows": n, "keys": n // 20, "files": n // 100_000},
            "SMALL_FILES_HERE": None,
        },
        scenario=deletes_by_key,
        sign=f"{DELETES}.small_files.SmallFiles._match",
        calls="high",
    ),
    Case(
        figures={"BITMAP_BYTES_HERE": None, "DATA_FILES_HERE": None, "PAIRS_HERE": None},
        scenario=deletes_by_position,
        sign=f"{DELETES}.positions.PositionDeletes.bitmaps",
    ),
    Case(
        figures={
            "POSITIONS_HERE": lambda n: {"rows": 3 * n},
            "POSITION_FILES_HERE": count("files", rows=1000),
        },
        scenario=deletes_by_position,
        sign=f"{DELETES}.positions._read_on_executors",
        arguments={"version": 3},
    ),
    Case(
        figures={"SENT_KEYS": count("keys", rows=3), "SENT_BYTES": None},
        scenario=deletes_by_key,
        sign=f"{DELETES}.joins.F.broadcast",
        calls="high",
        arguments={"reading": "join"},
    ),
    Case(
        figures={
            "KEYS_HERE": count("keys", rows=3),
            "KEY_FILES_HERE": count("parts", keys=10, rows=30),
        },
        scenario=deletes_by_key,
        sign=f"{DELETES}.equality.deleted_values",
        calls="high",
        arguments={"reading": "join", "kind": "bigint"},
    ),
    Case(
        figures={"RESOLVED_ROWS": lambda n: {"rows": n, "keys": n // 100}},
        scenario=deletes_by_key,
        sign=f"{DELETES}.resolve.Resolver._found_by_a_job",
        beside={**SMALL, "NEW_KEYS_JOINED": 0},
    ),
    Case(
        figures={"NEW_KEYS_JOINED": count("keys", rows=3)},
        scenario=deletes_by_key,
        sign=f"{DELETES}.resolve.Resolver._found_by_a_job",
        beside={**SMALL, "RESOLVED_ROWS": 0},
    ),
    Case(
        figures={"RESOLVED_PAIRS": None},
        scenario=deletes_by_key,
        sign=f"{DELETES}.small_files.SmallFiles._match",
        calls="high",
    ),
    Case(
        figures={"EXPLAINED_PAIRS": None},
        scenario=deletes_by_position,
        sign="frazil.spark.read.reader.PlannedRead.delete_ways",
        calls="high",
        arguments={"is_explained": True},
    ),
]  # fmt: skip


# -- files that are left out -----------------------------------------------------------------------


def selective(place: Place, *, rows: int = 40, files: int = 4, is_sql: bool = True) -> Work:
    """A read of a tenth of the rows, which are in one of several files of neighbouring rows."""

    def make() -> Any:
        table = place.table("id bigint, v string")
        each = -(-rows // files)
        for start in range(0, rows, each):
            ids = place.spark.range(start, min(start + each, rows), 1, 1)
            table.append(ids.selectExpr("id", "concat('v', id) as v"))
        return table

    table = place.once(("selective", rows, files), make)
    where = f"id < {rows // 10}"

    def run() -> Any:
        if is_sql:
            return place.lake.sql(f"SELECT * FROM {name_of(table)} WHERE {where}")
        return table.scan(where).to_df()

    return Work(run, rows_of, lambda: in_order([(n, f"v{n}") for n in range(rows // 10)]))


def joined(place: Place, *, rows: int = 400, files: int = 4, keys: int = 40) -> Work:
    """A join of rows, in files by their keys, with some of another table."""

    def facts() -> Any:
        table = place.table("k int, id bigint")
        each = -(-keys // files)
        for start in range(0, keys, each):
            own = f"id % {keys} between {start} and {start + each - 1}"
            table.append(
                place.spark.range(rows)
                .where(own)
                .selectExpr(f"int(id % {keys}) as k", "id")
                .coalesce(1)
            )
        return table

    def days() -> Any:
        table = place.table("k int, week int, part int")
        chosen = ("int(id) as k", "int(id % 10) as week", f"int(id * 2 div {keys}) as part")
        table.append(place.spark.range(0, keys, 1, 1).selectExpr(*chosen))
        return table

    large = place.once(("facts", rows, files, keys), facts)
    small = place.once(("days", keys), days)

    def run() -> Any:
        return place.lake.sql(
            f"SELECT f.id, d.k FROM {name_of(large)} f JOIN {name_of(small)} d ON f.k = d.k "
            "WHERE d.week = 3 AND d.part = 0"
        )

    def expected() -> Any:
        wanted = {k for k in range(keys) if k % 10 == 3 and 2 * k < keys}
        return in_order([(n, n % keys) for n in range(rows) if n % keys in wanted])

    return Work(run, rows_of, expected)


def added_keys(place: Place, *, rows: int = 30, files: int = 3) -> Work:
    """A look for two keys in files that others may have added."""

    def make() -> Any:
        table = place.table("id bigint, v string")
        table.append(place.spark.range(0, rows, 1, files).selectExpr("id", "'x' as v"))
        return table

    table = place.once(("added", rows, files), make)
    keys = (1, rows + 5)

    def run() -> Any:
        metadata = table.metadata
        target = Target.of(
            place.spark, metadata, table.io, metadata.current_snapshot, where=AlwaysTrue()
        )
        test = KeyTest(table.schema.find_field("id"), pa.array(keys, pa.int64()))
        left = test.left_of(target)
        return left.rows_with_files(table.schema.fields).where(f"id in {keys}").select("id", "v")

    return Work(run, rows_of, lambda: [(1, "x")])


def files_read(df: Any) -> int:
    """How many files are read."""
    return len(set(df.inputFiles()))


PRUNING = "frazil.spark.read.pruning"
PLANNED = [
    Case(
        figures={"OPENED_FILES": count("files", rows=1000), "LARGE_SIDE_BYTES": None},
        scenario=selective,
        sign="frazil.spark.sql.pruning.asked.EmptyRelations",
    ),
    Case(
        figures={"SMALL_SIDE_BYTES": None},
        scenario=joined,
        sign=f"{JOINS}._Sides.one_of_the_keys",
        calls="high",
        beside={"OPENED_FILES": 0, "LARGE_SIDE_BYTES": 0},
    ),
    Case(
        figures={"LARGE_SIDE_BYTES": None},
        scenario=joined,
        sign=f"{JOINS}._Sides.one_of_the_keys",
        beside={"OPENED_FILES": 0},
    ),
    Case(
        figures={"JOINED_KEYS": lambda n: {"keys": 20 * n, "rows": 20 * n}},
        scenario=joined,
        sign=files_read,
        beside={"OPENED_FILES": 0, "LARGE_SIDE_BYTES": 0},
    ),
    Case(
        figures={"PRUNED": None},
        scenario=selective,
        sign=f"{PRUNING}.work_on",
        beside={"PRUNING_CORES": 0},
        arguments={"is_sql": False},
    ),
    Case(
        figures={"PRUNING_CORES": None},
        scenario=selective,
        sign=f"{PRUNING}.work_on",
        beside={"PRUNED": 0},
        arguments={"is_sql": False},
    ),
    Case(
        figures={"ADDED_KEYS": count("rows")},
        scenario=added_keys,
        sign="frazil.spark.row_level.rivals.key_test.in_threads",
        calls="high",
    ),
]


# -- metadata tables -------------------------------------------------------------------------------


def metadata_table(
    place: Place, *, name: str, columns: tuple[str, ...], commits: int = 3, files: int = 2
) -> Work:
    """A metadata table of a table with a commit for each of some groups of files.

    Args:
        columns: what is compared of it, by `METADATA`.
    """

    def make() -> Any:
        settings = {"commit.manifest-merge.enabled": "false"}
        table = place.table("id bigint, p int", partition_by=["p"], properties=settings)
        for commit in range(commits):
            table.files.append(entries_of(table, commit, files))
        return table

    table = place.once(("metadata", commits, files), make)

    def run() -> Any:
        return getattr(table.inspect.dataframes, name)().selectExpr(*columns)

    return Work(run, rows_of, lambda: in_order(METADATA[name](commits, files)))


METADATA = {
    "files": lambda commits, files: [(n, 10, 10 * n, 10 * n + 9) for n in range(commits * files)],
    "all_files": lambda commits, files: [(n, 10) for n in range(commits * files)],
    "all_manifests": lambda commits, files: [
        (files, 0) for last in range(commits) for _ in range(last + 1)
    ],
    "partitions": lambda commits, files: [(n, 10, 1) for n in range(commits * files)],
}
"""The rows of a metadata table, by the table's content: each file has a partition, and ten rows."""

COLUMNS = {
    "files": ("partition.p", "record_count", "readable_metrics.id.lower_bound",
              "readable_metrics.id.upper_bound"),
    "all_files": ("partition.p", "record_count"),
    "all_manifests": ("added_data_files_count", "deleted_data_files_count"),
    "partitions": ("partition.p", "record_count", "file_count"),
}  # fmt: skip


def of_table(name: str) -> dict[str, Any]:
    """The arguments for a metadata table."""
    return {"name": name, "columns": COLUMNS[name]}


INSPECTED = [
    Case(
        figures={"DECODED_BYTES": None, "DECODED_MANIFESTS": count("commits"),
                 "DECODED_FILES": lambda n: {"commits": 5, "files": n // 5}},
        scenario=metadata_table,
        sign=f"{FRAMES}.dataframe_of",
        calls="high",
        arguments=of_table("files"),
    ),
    Case(
        figures={"LISTED_SNAPSHOTS": count("commits")},
        scenario=metadata_table,
        sign=f"{FRAMES}.dataframe_of",
        calls="high",
        arguments=of_table("all_manifests"),
    ),
    Case(
        figures={"LISTED_SNAPSHOTS": None},
        scenario=metadata_table,
        sign=f"{FRAMES}.dataframe_of",
        calls="high",
        arguments=of_table("all_files"),
    ),
    Case(
        figures={"PLANNED_BYTES": None},
        scenario=metadata_table,
        sign=f"{FRAMES}.partitions_of",
        beside={"PRUNING_CORES": 0},
        arguments=of_table("partitions"),
    ),
    *(
        [
            Case(
                figures={"ITEMS_IN_FUNCTION": None},
                scenario=metadata_table,
                sign=f"{FRAMES}.PlacedRows",
                calls="high",
                beside={"DECODED_BYTES": 0},
                arguments=of_table("files"),
            )
        ]
        if HAS_ARROW_FUNCTIONS
        else []
    ),
]  # fmt: skip

CASES = [*DELETED, *PLANNED, *INSPECTED]
