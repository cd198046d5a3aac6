"""Merge, delete and update of 10 million rows in 50 partitions, beside the Java runtime."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import functions as F

import frazil
from bench.context import CATALOG, Context, run_all
from bench.figures import Bar, Figure, compare, interleaved, report
from bench.first_read import in_new_process
from bench.rows import FLAT_DDL, flat

PARTITIONS = 50
CLUSTERED = f"i % {PARTITIONS}"
"""The merged rows are of one partition, the updated ones of five."""
SPREAD = f"id div 1000 % {PARTITIONS}"
"""Merged and updated rows are of every partition."""
UPSERTED = 10_000
UPSERT_ROUNDS = 2
MODES = {"merge-on-read": "MoR", "copy-on-write": "CoW"}
COMMANDS = ("delete", "update", "merge")
_ROUNDS_ALONE = 5
"""So many times the rounds: two in a hundred are less than what one round differs from another."""


def run(context: Context) -> Iterator[Figure]:
    """Each command on a table of its own on either side, rolled back after each round."""
    if not context.has_java:
        return
    for name, part in PARTS.items():
        if context.part in (None, name):
            yield from part(context)


def _one_partition(context: Context) -> Iterator[Figure]:
    for mode, short in MODES.items():
        pair = _Pair(context, mode=mode, version=2)
        yield from pair.measured(
            f"merge 1 %, {short}",
            lambda table: _merge(table, context),
            lambda name: _java_merge(name, context),
            Bar(at_most=0.7),
        )
        yield from pair.measured(f"update 5 %, {short}", *_update(context))
        if mode == "merge-on-read":
            yield from pair.measured(
                "delete 1 %, positions", _delete, _java_delete(context), _DELETE
            )
        pair.purge()


def _every_partition(context: Context) -> Iterator[Figure]:
    for mode, short in MODES.items():
        pair = _Pair(context, mode=mode, version=2, partition=SPREAD)
        yield from pair.measured(
            f"merge 1 % of every partition, {short}",
            lambda table: _merge(table, context),
            lambda name: _java_merge(name, context),
            Bar(at_most=0.7),
        )
        yield from pair.measured(f"update 5 % of every partition, {short}", *_update(context))
        pair.purge()


def _vectors(context: Context) -> Iterator[Figure]:
    pair = _Pair(context, mode="merge-on-read", version=3)
    yield from pair.measured("delete 1 %, vectors", _delete, _java_delete(context), _DELETE)
    pair.purge()


def _new_process(context: Context) -> Iterator[Figure]:
    for version, kind in ((2, "positions"), (3, "vectors")):
        pair = _Pair(context, mode="merge-on-read", version=version)
        yield pair.read_in_new_processes(f"delete 1 %, {kind}", _delete, _java_delete(context))
        ours, java, _ = _update(context)
        yield pair.read_in_new_processes("update 5 %, MoR", ours, java)
        pair.purge()


_DELETE = Bar(at_most=0.8)


def _merge(table: frazil.Table, context: Context) -> object:
    source = context.spark.table("changes_source")
    return (
        table.merge(source, on="target.id = source.id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )


def _java_merge(name: str, context: Context) -> object:
    return context.spark.sql(
        f"MERGE INTO {name} t USING changes_source s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def _update(
    context: Context,
) -> tuple[Callable[[frazil.Table], object], Callable[[str], object], Bar]:
    return (
        lambda table: table.update(set={"d": "d + 1"}, where="i % 20 = 3"),
        lambda name: context.spark.sql(f"UPDATE {name} SET d = d + 1 WHERE i % 20 = 3"),
        Bar(at_most=0.9),
    )


def _delete(table: frazil.Table) -> object:
    return table.delete("k % 100 = 7")


def _java_delete(context: Context) -> Callable[[str], object]:
    return lambda name: context.spark.sql(f"DELETE FROM {name} WHERE k % 100 = 7")


class _Pair:
    """Two tables of the same rows, one changed by each side."""

    def __init__(
        self, context: Context, *, mode: str, version: int, partition: str = CLUSTERED
    ) -> None:
        self._context = context
        self._suffix = f" v{version}{context.suffix}"
        properties = {f"write.{command}.mode": mode for command in COMMANDS}
        rows = flat(context.spark, context.rows).selectExpr("*", f"int({partition}) as p")
        changed = flat(context.spark, context.rows).where("id % 100 = 42")
        changed = changed.selectExpr(
            "id", "k", "d + 1 as d", "s", "i", "ts", f"int({partition}) as p"
        )
        folder = str(context.folder / "changes-source")
        changed.write.mode("overwrite").parquet(folder)
        context.spark.read.parquet(folder).createOrReplaceTempView("changes_source")
        self._tables: dict[str, frazil.Table] = {}
        for side in ("ours", "java"):
            table = context.lake.create_table(
                f"bench.changes_{side}",
                FLAT_DDL + ", p int",
                partition_by=["p"],
                format_version=version,
                properties=properties,
            )
            table.append(rows)
            self._tables[side] = table
        self._base = {side: t.metadata.current_snapshot_id for side, t in self._tables.items()}

    def measured(
        self,
        title: str,
        ours: Callable[[frazil.Table], object],
        java: Callable[[str], object],
        bar: Bar,
    ) -> Iterator[Figure]:
        """The command, and the first read after it."""
        sides: Mapping[str, Callable[[], object]] = {
            "ours": lambda: ours(self._tables["ours"]),
            "java": lambda: java("java.bench.changes_java"),
        }
        took: dict[str, list[float]] = {"ours": [], "java": []}
        reads: dict[str, list[float]] = {"ours": [], "java": []}
        for index in range(self._context.rounds + 1):
            order = list(sides) if index % 2 == 0 else list(sides)[::-1]
            for side in order:
                started = time.perf_counter()
                sides[side]()
                between = time.perf_counter()
                self._read(side)
                ended = time.perf_counter()
                self._back(side)
                if index or not self._context.rounds:
                    took[side].append(between - started)
                    reads[side].append(ended - between)
        name = title + self._suffix
        yield compare(name, "Java runtime", _median(took["ours"]), _median(took["java"]), bar)
        yield report(
            f"first read after {name}",
            _median(reads["ours"]),
            unit="s",
            against="Java runtime",
            theirs=_median(reads["java"]),
        )

    def read_in_new_processes(
        self,
        title: str,
        ours: Callable[[frazil.Table], object],
        java: Callable[[str], object],
    ) -> Figure:
        """The first read after the command, each in a process that has read nothing before."""
        ours(self._tables["ours"])
        java("java.bench.changes_java")
        took: dict[str, list[float]] = {side: [] for side in self._tables}
        for index in range(self._context.rounds):
            for side in list(took)[:: 1 if index % 2 == 0 else -1]:
                folder, table = self._context.folder, f"bench.changes_{side}"
                took[side].append(in_new_process(folder, side, table))
        for side in self._tables:
            self._back(side)
        name = f"first read in a new process after {title}{self._suffix}"
        return compare(
            name, "Java runtime", _median(took["ours"]), _median(took["java"]), Bar(at_most=1.1)
        )

    def by_rows_and_by_files(self, work: Callable[[frazil.Table], object]) -> tuple[float, float]:
        """The median seconds of a command of Frazil's, run in turns on either table.

        Commits of the first table decide conflicts by rows, those of the second by files.
        """
        decides = {"ours": "true", "java": "false"}
        for side, by_rows in decides.items():
            self._tables[side].set_properties({"frazil.commit.row-level-conflicts": by_rows})
        times: dict[str, list[float]] = {side: [] for side in decides}
        for index in range(_ROUNDS_ALONE * self._context.rounds + 1):
            for side in list(decides)[:: 1 if index % 2 == 0 else -1]:
                started = time.perf_counter()
                work(self._tables[side])
                if index:
                    times[side].append(time.perf_counter() - started)
                self._back(side)
        return _median(times["ours"]), _median(times["java"])

    def _read(self, side: str) -> None:
        if side == "ours":
            run_all(self._tables[side].to_df())
        else:
            run_all(self._context.java("bench.changes_java"))

    def _back(self, side: str) -> None:
        table = self._tables[side]
        table.refresh()
        snapshot = self._base[side]
        assert snapshot is not None
        table.rollback_to_snapshot(snapshot)

    def purge(self) -> None:
        """Remove both tables."""
        for side in self._tables:
            self._context.lake.purge_table(f"bench.changes_{side}")


def _median(times: list[float]) -> float:
    return sorted(times)[len(times) // 2]


def _without_rivals(context: Context) -> Iterator[Figure]:
    """What it costs to be ready to decide conflicts by rows, where nobody else commits."""
    works: Mapping[str, Callable[[frazil.Table], object]] = {
        "merge 1 % of every partition": lambda table: _merge(table, context),
        "update 5 % of every partition": _update(context)[0],
        "delete 1 %": _delete,
    }
    by_rows = by_files = 0.0
    for version in (2, 3):
        pair = _Pair(context, mode="merge-on-read", version=version, partition=SPREAD)
        for title, work in works.items():
            rows, files = pair.by_rows_and_by_files(work)
            name = f"{title}, by rows without rivals, v{version}{context.suffix}"
            yield report(name, rows, unit="s", against="by files", theirs=files)
            by_rows, by_files = by_rows + rows, by_files + files
        pair.purge()
    name = f"all of them, by rows without rivals{context.suffix}"
    yield compare(name, "by files", by_rows, by_files, Bar(at_most=1.02))


def _upsert(context: Context) -> Iterator[Figure]:
    """10 000 rows into a tenth of the rows; other values in each round."""
    whole = flat(context.spark, context.rows // 10)
    names = {"ours": "bench.upserted", "theirs": "bench.upserted_pyiceberg"}
    for name in names.values():
        context.lake.create_table(name, FLAT_DDL, format_version=2).append(whole)
    table = context.lake.load_table(names["ours"])
    peers = SqlCatalog(
        CATALOG, uri=f"sqlite:///{context.folder / 'catalog.db'}", warehouse=str(context.folder)
    )
    peer = peers.load_table(names["theirs"])
    chosen = whole.where("id % 100 = 1").limit(UPSERTED)
    rows = [
        chosen.withColumn("d", F.lit(float(round_))).toArrow().cast(peer.schema().as_arrow())
        for round_ in range(UPSERT_ROUNDS + 1)
    ]
    ours, theirs = iter(rows), iter(rows)
    took = interleaved(
        {
            "ours": lambda: table.upsert(next(ours), keys=["id"]),
            "theirs": lambda: peer.upsert(next(theirs), join_cols=["id"]),
        },
        rounds=UPSERT_ROUNDS,
    )
    yield report(
        f"upsert 10 000 rows{context.suffix}",
        took["ours"],
        unit="s",
        against="PyIceberg",
        theirs=took["theirs"],
    )
    for name in names.values():
        context.lake.purge_table(name)


PARTS: Mapping[str, Callable[[Context], Iterator[Figure]]] = {
    "one-partition": _one_partition,
    "every-partition": _every_partition,
    "vectors": _vectors,
    "new-process": _new_process,
    "without-rivals": _without_rivals,
    "upsert": _upsert,
}
"""Each is one run's part by its name: `--part`."""
