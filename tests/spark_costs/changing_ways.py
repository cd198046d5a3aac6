"""Writes, commands on rows, and maintenance: who does it, and by what."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.rival_commits import before_the_commit
from tests.spark_costs.ways import (
    Case,
    Place,
    Sized,
    Work,
    count,
    data_files_below,
    entries_of,
    equality_delete,
    every_third,
    folder_of,
    in_order,
    make_old,
    rows_in,
)

from frazil.format.manifests import DataFile

ON_READ = {f"write.{command}.mode": "merge-on-read" for command in ("delete", "update", "merge")}
MATCHES = "frazil.spark.row_level.merging.matches"
KEYS = "frazil.spark.row_level.merging.keys"
COMPACTION = "frazil.spark.maintenance.compaction"
TASKS = "frazil.spark.session.tasks"
WRITE = "frazil.spark.write.files"


# -- writes ----------------------------------------------------------------------------------------


def append(place: Place, *, rows: int = 40, parts: int = 4, columns: int = 2) -> Work:
    """An append of few rows of this process to a partitioned table.

    Args:
        columns: of whole numbers, with the partition's.
    """
    names = ["p", "id", *(f"c{n}" for n in range(columns - 2))]
    kinds = ["int", *["bigint"] * (columns - 1)]
    ddl = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    table = place.table(ddl, partition_by=["p"])
    data = {name: pa.array(range(rows), pa.int64()) for name in names[1:]}
    given = pa.table({"p": pa.array([n % parts for n in range(rows)], pa.int32()), **data})

    def expected() -> Any:
        return in_order([(n % parts, *[n] * (columns - 1)) for n in range(rows)])

    return Work(lambda: table.append(given), lambda _: rows_in(table), expected)


def usual(place: Place, *, rows: int = 40, parts: int = 4) -> Work:
    """An overwrite of partitions that is expected to be like the one before it."""
    table = place.table("id bigint, p int", partition_by=["p"])
    given = place.spark.range(rows).selectExpr("id", f"int(id % {parts}) as p")
    table.overwrite_partitions(given)
    return Work(
        lambda: table.overwrite_partitions(given),
        lambda _: rows_in(table),
        lambda: in_order([(n, n % parts) for n in range(rows)]),
    )


def added_files(place: Place, *, files: int = 3) -> Work:
    """Files of a folder that become a table's."""
    folder, table = place.new_folder(), place.table("id bigint")
    for number in range(files):
        pq.write_table(pa.table({"id": [number]}), folder / f"{number}.parquet")
    return Work(
        lambda: table.maintenance.add_files(f"`parquet`.`{folder}`"),
        lambda _: rows_in(table),
        lambda: in_order([(n,) for n in range(files)]),
    )


def update_in_place(place: Place, *, rows: int = 60, parts: int = 6) -> Work:
    """An update that copies rows of partitions, which stay with the tasks that read them."""
    table = place.table("id bigint, p int, v int", partition_by=["p"])
    given = place.spark.range(0, rows, 1, 1)
    table.append(given.selectExpr("id", f"int(id % {parts}) as p", "0 as v"))
    return Work(
        lambda: table.update({"v": "1"}, "id % 4 = 1"),
        lambda _: rows_in(table),
        lambda: in_order([(n, n % parts, int(n % 4 == 1)) for n in range(rows)]),
    )


WRITTEN = [
    Case(
        figures={"FEW_VALUES": lambda n: {"rows": 2 * n, "parts": 4}},
        scenario=append,
        sign=f"{WRITE}.FileWrite.write_natively",
    ),
    Case(
        figures={"MANY_PARTITIONS": count("parts", rows=100)},
        scenario=usual,
        sign=f"{WRITE}.FileWrite.write_natively",
        calls="high",
    ),
    Case(
        figures={"LOCAL_FOOTERS": lambda n: {"parts": n // 7, "rows": n}},
        scenario=append,
        sign=f"{TASKS}.map_batches",
        beside={"FEW_VALUES": 0},
    ),
    Case(
        figures={"ITEMS_IN_FUNCTION": None},
        scenario=append,
        sign=f"{TASKS}.spark_frame",
        beside={"FEW_VALUES": 0, "LOCAL_FOOTERS": 0},
    ),
    Case(
        figures={"REMOTE_FOOTERS": None},
        scenario=added_files,
        sign=f"{TASKS}.map_batches",
    ),
    Case(
        figures={"OPEN_FILES": count("parts", rows=10_000)},
        scenario=update_in_place,
        sign=None,
    ),
]


# -- commands on rows ------------------------------------------------------------------------------


def delete(
    place: Place, *, rows: int = 300, files: int = 3, version: int = 3, every: int = 10
) -> Work:
    """A delete of each so-manieth row that marks it."""
    table = place.table("id bigint, v int", version=version, properties=ON_READ)
    table.append(place.spark.range(0, rows, 1, files).selectExpr("id", "int(id % 7) as v"))
    return Work(
        lambda: table.delete(f"id % {every} = 1"),
        lambda _: rows_in(table),
        lambda: in_order([(n, n % 7) for n in range(rows) if n % every != 1]),
    )


def merge(place: Place, *, rows: int = 100, keys: int = 30, new: int = 5) -> Work:
    """A merge that changes each second of the first rows, and adds some."""
    table = place.table("k bigint, v string", version=3, properties=ON_READ)
    table.append(place.spark.range(0, rows, 1, 2).selectExpr("id as k", "'old' as v"))
    ids = f"if(id < {keys}, id * 2, {rows} + id)"
    source = place.spark.range(0, keys + new, 1, 2).selectExpr(f"{ids} as k", "'new' as v")

    def run() -> Any:
        change = table.merge(source, on="target.k = source.k").when_matched_update_all()
        return change.when_not_matched_insert_all().execute()

    def expected() -> Any:
        found = dict.fromkeys(range(rows), "old") | {2 * n: "new" for n in range(keys)}
        found |= {rows + keys + n: "new" for n in range(new)}
        return in_order([*found.items()])

    return Work(run, lambda _: rows_in(table), expected)


def changes(place: Place, *, rows: int = 40, keys: int = 5) -> Work:
    """Changes by key, in the mode that figures choose."""
    table = place.table("id bigint, v string")
    table.append(place.spark.range(0, rows, 1, 1).selectExpr("id", "'old' as v"))
    given = place.spark.range(0, keys, 1, 1).selectExpr(f"id + {rows - 2} as id", "'new' as v")

    def expected() -> Any:
        found = dict.fromkeys(range(rows), "old") | {n + rows - 2: "new" for n in range(keys)}
        return in_order([*found.items()])

    return Work(lambda: table.apply_changes(given, keys="id"), lambda _: rows_in(table), expected)


def beside_a_compaction(place: Place, *, rows: int = 40) -> Work:
    """A delete whose rows another writer moves into a new file before its commit."""
    table = place.table("id bigint, v int", version=3, properties=ON_READ)
    table.append(place.spark.range(0, rows, 1, 2).selectExpr("id", "int(id % 7) as v"))
    other = place.lake.load_table(table.identifier)

    def run() -> Any:
        before_the_commit(table, lambda: other.compact(rewrite_all=True))
        return table.delete("id % 10 = 3", retry=1)

    return Work(
        run,
        lambda _: rows_in(table),
        lambda: in_order([(n, n % 7) for n in range(rows) if n % 10 != 3]),
    )


AS_WORDS = {"PLACES_HERE": 0, "PLACES_LOOKED_AT": 0}
"""Places come to the driver as words, or not at all."""

FILTER = {f"{KEYS}.key_filter._ROWS_A_KEY": 0}
CHOICE = {"SMALL_TABLE": 0, "BIG_SHARE": 0, "HEAVY_LOAD": 0}
"""Nothing speaks for a merge."""


def of_choice(name: str, sized: Sized | None = None) -> Case:
    """A figure that chooses how changes by key are written, where the others say nothing."""
    return Case(
        figures={name: sized},
        scenario=changes,
        sign="frazil.spark.upserts.apply._Application._with_equality_deletes",
        beside={key: value for key, value in CHOICE.items() if key != name},
    )


COMMANDS = [
    Case(
        figures={
            "DELETED_ROWS": lambda n: {"rows": 2 * n, "every": 2},
            "DELETE_FILES": lambda n: {"rows": 1000 * n, "files": n, "version": 2},
        },
        scenario=delete,
        sign="frazil.spark.delete_files.spread._pack",
    ),
    Case(
        figures={"MATCH_BYTES": lambda n: {"rows": n // 8, "keys": n // 32}},
        scenario=merge,
        sign=f"{MATCHES}.counts.MatchCounts.of",
    ),
    Case(
        figures={"WORDS_HERE": None},
        scenario=delete,
        sign="frazil.spark.delete_files.spread._join",
        beside=AS_WORDS,
    ),
    Case(
        figures={"PLACES_HERE": lambda n: {"rows": n}},
        scenario=delete,
        sign="frazil.spark.deletes.collect.sparse_rows",
        beside={"PLACES_LOOKED_AT": 0},
    ),
    Case(
        figures={"PLACES_LOOKED_AT": None},
        scenario=delete,
        sign="frazil.spark.deletes.collect.few_rows",
        calls="high",
        beside={"PLACES_HERE": 299},
    ),
    Case(
        figures={"SOURCE_KEY_BYTES": lambda n: {"rows": n // 4, "keys": n // 24}},
        scenario=merge,
        sign=f"{MATCHES}.by_place.collected_pairs",
        calls="high",
    ),
    Case(
        figures={"MATCHED_BYTES": lambda n: {"rows": n // 8, "keys": n // 32}},
        scenario=merge,
        sign=f"{MATCHES}.matching.without_broadcast",
        low=-1,
    ),
    Case(
        figures={"MATCHES_HERE": lambda n: {"rows": 2 * n, "keys": n, "new": 0}},
        scenario=merge,
        sign=f"{MATCHES}.matching.Matching.new_rows",
        arguments={"new": 0},
    ),
    Case(
        figures={"FILTERED_KEYS": lambda n: {"rows": 8 * n, "keys": n}},
        scenario=merge,
        sign=f"{KEYS}.key_filter.words_value",
        calls="high",
        beside={**FILTER, "FILTERED_ROWS": 0},
    ),
    Case(
        figures={"FILTERED_ROWS": lambda n: {"rows": n, "keys": n // 100}},
        scenario=merge,
        sign=f"{KEYS}.key_filter.words_value",
        beside=FILTER,
    ),
    Case(
        figures={"SOUGHT_VALUES": lambda n: {"rows": 1000 * n, "keys": n}},
        scenario=merge,
        sign="frazil.spark.row_level.merging.run.In",
        calls="high",
    ),
    Case(
        figures={"SOUGHT_ROWS": None},
        scenario=beside_a_compaction,
        sign="frazil.spark.row_level.rivals.compared_rows.moved_by_id",
        calls="high",
    ),
    of_choice("SMALL_TABLE", lambda n: {"rows": n, "keys": 1_000}),
    of_choice("BIG_SHARE", lambda n: {"rows": 100_000 * n, "keys": 100_000}),
    of_choice("HEAVY_LOAD"),
]  # fmt: skip


# -- maintenance -----------------------------------------------------------------------------------


def manifests(place: Place, *, commits: int = 3, files: int = 2) -> Work:
    """Manifests that are rewritten as one, of files that are not there."""
    settings = {
        "commit.manifest-merge.enabled": "false",
        "commit.manifest.target-size-bytes": str(1 << 40),
    }
    table = place.table("id bigint, p int", partition_by=["p"], properties=settings)
    for commit in range(commits):
        table.files.append(entries_of(table, commit, files))

    def told(_: Any) -> Any:
        held = table.refresh().inspect.data_files().select("partition", "record_count")
        return len(table.inspect.manifests()), in_order([(p["p"], n) for p, n in held.rows()])

    return Work(
        lambda: table.maintenance.rewrite_manifests(),
        told,
        lambda: (1, in_order([(n, 10) for n in range(commits * files)])),
    )


def orphans(place: Place, *, folders: int = 2) -> Work:
    """A search for files that the table does not know, one in each folder; another one is new."""
    table = place.table("id bigint")
    table.append(place.spark.range(0, 5, 1, 1))
    [known] = data_files_below(table)
    make_old(known)
    known.with_name("young.parquet").write_bytes(b"123")
    for number in range(folders):
        orphan = known.parent / f"p={number}" / "orphan.parquet"
        orphan.parent.mkdir()
        orphan.write_bytes(b"123")
        make_old(orphan)

    def told(_: Any) -> Any:
        left = {path.name for path in data_files_below(table)} - {known.name}
        return left, rows_in(table)

    return Work(
        lambda: table.maintenance.remove_orphan_files(),
        told,
        lambda: ({"young.parquet"}, [(n,) for n in range(5)]),
    )


def check(place: Place, *, files: int = 3) -> Work:
    """A check of a table of which a file is gone."""
    table = place.table("id bigint")
    folder = folder_of(table)
    folder.mkdir(parents=True, exist_ok=True)
    first = folder / "0.parquet"
    number = {"PARQUET:field_id": "1"}
    schema = pa.schema([pa.field("id", pa.int64(), True, number)])
    pq.write_table(pa.table([range(5)], schema=schema), first)
    for place_of_file in range(1, files):
        (folder / f"{place_of_file}.parquet").hardlink_to(first)
    size = first.stat().st_size
    table.files.append(
        DataFile(
            file_path=f"{table.location}/data/{n}.parquet", record_count=5, file_size_in_bytes=size
        )
        for n in range(files)
    )
    first.unlink()
    table.io.caches.clear()

    def told(result: Any) -> Any:
        found = result.frame.select("problem", "file_path").rows()
        return [(problem, path.rpartition("/")[2]) for problem, path in found]

    return Work(lambda: table.maintenance.check(), told, lambda: [("missing", "0.parquet")])


def compaction(place: Place, *, rows: int = 60, files: int = 3, keys: int = 0) -> Work:
    """Small files that become one, without those of the first rows that are deleted by key."""
    table = place.table("id bigint, v string")
    table.append(place.spark.range(0, rows, 1, files).selectExpr("id", "concat('v', id) as v"))
    if keys:
        [given] = every_third(keys, 1, "bigint")
        table.files.row_delta(added_deletes=[equality_delete(table, "id", given)])

    def told(_: Any) -> Any:
        return len(table.refresh().inspect.data_files()), rows_in(table)

    def expected() -> Any:
        gone = set(range(0, 3 * keys, 3))
        return 1, in_order([(n, f"v{n}") for n in range(rows) if n not in gone])

    return Work(lambda: table.compact(rewrite_all=True), told, expected)


def sort(place: Place, *, rows: int = 4000, parts: int = 2, group: int = 1 << 27) -> Work:
    """Rows that are sorted over all files: into about so many files.

    Args:
        group: the bytes of a row group.
    """
    settings = {"write.parquet.row-group-size-bytes": str(group)}
    table = place.table("id bigint, v string", properties=settings)
    mixed = f"(id * 7919) % {rows} as id"
    table.append(place.spark.range(0, rows, 1, 4).selectExpr(mixed, "uuid() as u")
                 .selectExpr("id", "concat(id % 10, repeat(u, 0)) as v"))  # fmt: skip
    size = sum(path.stat().st_size for path in data_files_below(table))

    def run() -> Any:
        return table.compact(
            rewrite_all=True,
            strategy="sort",
            sort_order="id desc",
            target_file_size_bytes=size // parts + 1000,
            min_file_size_bytes=1,
        )

    def told(_: Any) -> Any:
        rows = rows_in(table)
        read = [pq.read_table(path, partitioning=None)["id"].to_pylist() for path in live(table)]
        ordered = all(ids == sorted(ids, reverse=True) for ids in read)
        ends = sorted((min(ids), max(ids)) for ids in read)
        apart = all(one[1] < other[0] for one, other in pairwise(ends))
        return ordered, apart, rows

    def expected() -> Any:
        return True, True, in_order([(n, str(n % 10)) for n in range(rows)])

    return Work(run, told, expected)


def live(table: Any) -> list[str]:
    """The paths of a table's data files on this disk."""
    paths = table.refresh().inspect.data_files()["file_path"]
    return ["/" + path.removeprefix("file:").lstrip("/") for path in paths]


MAINTENANCE = "frazil.spark.maintenance"
KEPT = [
    Case(
        figures={
            "REWRITTEN_BYTES": None,
            "REWRITTEN_FILES": lambda n: {"commits": 20, "files": n // 20},
        },
        scenario=manifests,
        sign=f"{COMPACTION}.manifests._write_clusters",
    ),
    Case(
        figures={"LISTED_FOLDERS": count("folders"), "PLANNED_BYTES": None},
        scenario=orphans,
        sign=f"{MAINTENANCE}.orphans._OnCluster",
        low=-1,
    ),
    Case(
        figures={"CHECKED_FILES": count("files")},
        scenario=check,
        sign=f"{MAINTENANCE}.checks._check_on_cluster",
    ),
    Case(
        figures={
            "COPIED_BYTES_HERE": None,
            "COPIED_VALUES_HERE": lambda n: {"rows": n // 2},
            "COPIED_FILES_HERE": count("files", rows=1000),
        },
        scenario=compaction,
        sign=f"{COMPACTION}.copying._copy_there",
    ),
    Case(
        figures={"PAIRS_HERE": None},
        scenario=compaction,
        sign=f"{COMPACTION}.known_deletes.SmallFiles",
        calls="high",
        arguments={"keys": 5},
    ),
    Case(
        figures={"COMPARED_TASKS": None},
        scenario=sort,
        sign=f"{COMPACTION}.arranging.arrangement.sample_of",
        calls="high",
    ),
    Case(
        figures={"JOINED_PIECES": None},
        scenario=sort,
        sign=f"{WRITE}.joined_pieces",
        calls="high",
        low=1,
        arguments={"parts": 1, "group": 5_000},
    ),
]

CASES = [*COMMANDS, *WRITTEN, *KEPT]
