"""The REST catalog beside Java's, on one server: a warm load, a commit, an append of 1 000 rows.

Each on a table of some snapshots and on one of six times as many. Beside that, what `frazil serve`
answers in a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import frazil
from bench import serving
from bench.context import Context
from bench.figures import Bar, Figure, compare, interleaved, limit, report
from bench.rows import FLAT_DDL, flat
from frazil.catalog.config import load_catalog
from frazil.format.manifests import DataFile
from frazil.table.handle import TableHandle

ROUNDS = 25
SNAPSHOTS = (50, 300)
NO_SLOWER = Bar(at_most=1.0)
# Reports of metrics are requests beside the work, of both sides.
NO_REPORTS = {"rest-metrics-reporting-enabled": "false"}
REQUESTS = {"warm load": 1, "warm commit": 2, "warm append of 1 000 rows": 2}
"""How many requests each may make at most."""


def run(context: Context) -> Iterator[Figure]:
    """Against Java's REST catalog where there is one, and the server's own figures."""
    if context.has_java:
        with serving.frazil_serve(_folder(context, "served")) as served:
            yield from _beside_java(context, served)
    yield from serving.run(_folder(context, "serving"))


def _folder(context: Context, name: str) -> Any:
    folder = context.folder / name
    folder.mkdir()
    return folder


def _beside_java(context: Context, served: serving.Served) -> Iterator[Figure]:
    spark = context.spark
    for key, value in {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": served.uri,
        ".cache-enabled": "false",
        **{f".{name}": value for name, value in NO_REPORTS.items()},
    }.items():
        spark.conf.set(f"spark.sql.catalog.java_rest{key}", value)
    with frazil.connect(spark, type="rest", uri=served.uri, name="ours", **NO_REPORTS) as lake:
        lake.create_namespace("bench")
        for snapshots in SNAPSHOTS:
            names = [f"bench.{name}{snapshots}" for name in ("ours", "java")]
            for name in names:
                _grow(lake.create_table(name, FLAT_DDL), snapshots)
            for title, sides in _sides(context, lake, served.uri, *names).items():
                yield from _figures(context, served, f"{title}, {snapshots} snapshots", *sides)


def _figures(
    context: Context,
    served: serving.Served,
    title: str,
    ours: Callable[[], object],
    java: Callable[[], object],
) -> Iterator[Figure]:
    for _ in range(3):
        ours()
        java()
    counted = [_requests(served, side) for side in (ours, java)]
    took = interleaved({"ours": ours, "java": java}, rounds=ROUNDS, warm=5)
    name = f"{title}, REST{context.suffix}"
    yield compare(name, "Java's catalog", took["ours"], took["java"], NO_SLOWER)
    most = REQUESTS[title.partition(",")[0]]
    yield limit(f"requests of a {title}", counted[0], most, unit="requests")
    yield report(f"requests of a {title}, Java's", counted[1], unit="requests")


def _grow(table: TableHandle, snapshots: int) -> None:
    """Append so many files that nobody reads, a commit each."""
    for number in range(snapshots):
        table.files.fast_append([_file(f"{table.location}/data/grown{number}.parquet")])


def _file(path: str) -> DataFile:
    return DataFile(file_path=path, record_count=1, file_size_in_bytes=1000)


def _requests(served: serving.Served, work: Callable[[], object]) -> int:
    before = served.requests()
    work()
    return served.requests() - before


def _sides(
    context: Context, lake: frazil.Lake, uri: str, our_name: str, java_name: str
) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    spark = context.spark
    jvm: Any = spark.sparkContext._jvm
    session = spark._jsparkSession
    catalog = load_catalog("ours", type="rest", uri=uri, **NO_REPORTS)
    handle = TableHandle(catalog, catalog.load_table(our_name))
    numbers = iter(range(1_000_000))

    def java_table() -> Any:
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            session, f"java_rest.{java_name}"
        )

    loaded = java_table()

    def our_commit() -> None:
        path = f"{handle.location}/data/{next(numbers)}.parquet"
        handle.files.fast_append([_file(path)])

    def java_commit() -> None:
        file = (
            jvm.org.apache.iceberg.DataFiles.builder(loaded.spec())
            .withPath(f"{loaded.location()}/data/{next(numbers)}.parquet")
            .withFileSizeInBytes(1000)
            .withRecordCount(1)
            .build()
        )
        loaded.newFastAppend().appendFile(file).commit()

    rows = lambda: flat(spark, 1000).coalesce(1)  # noqa: E731
    table = lake.load_table(our_name)
    return {
        "warm load": (lambda: lake.load_table(our_name), java_table),
        "warm append of 1 000 rows": (
            lambda: table.append(rows()),
            lambda: rows().writeTo(f"java_rest.{java_name}").append(),
        ),
        "warm commit": (our_commit, java_commit),
    }
