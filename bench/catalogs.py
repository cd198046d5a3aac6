"""The REST catalog beside Java's, on one server: a warm load, a commit, an append of 1 000 rows.

Each on a table of some snapshots and on one of six times as many. Beside that, what `frazil serve`
answers in a second, and the catalogs of a Hive metastore and of an HDFS. The parts are `rest`,
`hive`, `hdfs` and `serving`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import frazil
from bench import metastores, serving
from bench.catalog_sides import (
    APPEND,
    LOAD,
    Sides,
    grow,
    java_table,
    load_and_append,
    set_java_catalog,
    unread_file,
)
from bench.context import Context
from bench.figures import Bar, Figure, compare, interleaved, limit, report
from bench.rows import FLAT_DDL
from frazil.catalog.config import load_catalog
from frazil.table.handle import TableHandle

PARTS = ("rest", *metastores.PARTS, "serving")
ROUNDS = 25
SNAPSHOTS = (50, 300)
NO_SLOWER = Bar(at_most=1.0)
# Reports of metrics are requests beside the work, of both sides.
NO_REPORTS = {"rest-metrics-reporting-enabled": "false"}
COMMIT = "warm commit"
REQUESTS = {LOAD: 1, COMMIT: 2, APPEND: 2}
"""How many requests each may make at most."""


def run(context: Context) -> Iterator[Figure]:
    """Against Java's REST catalog where there is one, and the server's own figures."""
    if context.has_java:
        if context.part in (None, "rest"):
            with serving.frazil_serve(_folder(context, "served")) as served:
                yield from _beside_java(context, served)
        yield from metastores.run(context, _folder(context, "metastores"))
    if context.part in (None, "serving"):
        yield from serving.run(_folder(context, "serving"))


def _folder(context: Context, name: str) -> Any:
    folder = context.folder / name
    folder.mkdir()
    return folder


def _beside_java(context: Context, served: serving.Served) -> Iterator[Figure]:
    set_java_catalog(context, "java_rest", {"type": "rest", "uri": served.uri, **NO_REPORTS})
    with frazil.connect(
        context.spark, type="rest", uri=served.uri, name="ours", **NO_REPORTS
    ) as lake:
        lake.create_namespace("bench")
        for snapshots in SNAPSHOTS:
            names = [f"bench.{name}{snapshots}" for name in ("ours", "java")]
            for name in names:
                grow(lake.create_table(name, FLAT_DDL), snapshots)
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


def _requests(served: serving.Served, work: Callable[[], object]) -> int:
    before = served.requests()
    work()
    return served.requests() - before


def _sides(
    context: Context, lake: frazil.Lake, uri: str, our_name: str, java_name: str
) -> dict[str, Sides]:
    jvm: Any = context.spark.sparkContext._jvm
    catalog = load_catalog("ours", type="rest", uri=uri, **NO_REPORTS)
    handle = TableHandle(catalog, catalog.load_table(our_name))
    numbers = iter(range(1_000_000))
    java_name = f"java_rest.{java_name}"
    loaded = java_table(context, java_name)

    def our_commit() -> None:
        path = f"{handle.location}/data/{next(numbers)}.parquet"
        handle.files.fast_append([unread_file(path)])

    def java_commit() -> None:
        file = (
            jvm.org.apache.iceberg.DataFiles.builder(loaded.spec())
            .withPath(f"{loaded.location()}/data/{next(numbers)}.parquet")
            .withFileSizeInBytes(1000)
            .withRecordCount(1)
            .build()
        )
        loaded.newFastAppend().appendFile(file).commit()

    both = load_and_append(context, lake, our_name, java_name)
    return {**both, COMMIT: (our_commit, java_commit)}
