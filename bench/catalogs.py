"""The REST catalog beside Java's, on one server: a warm load, a commit, an append of 1 000 rows.

Beside that, what `frazil serve` answers in a second.
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
from frazil.format.manifests import Content, DataFile
from frazil.table.handle import TableHandle

ROUNDS = 25
NO_SLOWER = Bar(at_most=1.0)
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
    }.items():
        spark.conf.set(f"spark.sql.catalog.java_rest{key}", value)
    with frazil.connect(spark, type="rest", uri=served.uri, name="ours") as lake:
        lake.create_namespace("bench")
        for name in ("ours", "java"):
            lake.create_table(f"bench.{name}", FLAT_DDL)
        for title, (ours, java) in _sides(context, lake, served.uri).items():
            for _ in range(3):
                ours()
                java()
            counted = [_requests(served, side) for side in (ours, java)]
            took = interleaved({"ours": ours, "java": java}, rounds=ROUNDS, warm=5)
            name = f"{title}, REST{context.suffix}"
            yield compare(name, "Java's catalog", took["ours"], took["java"], NO_SLOWER)
            yield limit(f"requests of a {title}", counted[0], REQUESTS[title], unit="requests")
            yield report(f"requests of a {title}, Java's", counted[1], unit="requests")


def _requests(served: serving.Served, work: Callable[[], object]) -> int:
    before = served.requests()
    work()
    return served.requests() - before


def _sides(
    context: Context, lake: frazil.Lake, uri: str
) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    spark = context.spark
    jvm: Any = spark.sparkContext._jvm
    session = spark._jsparkSession
    catalog = load_catalog("ours", type="rest", uri=uri)
    handle = TableHandle(catalog, catalog.load_table("bench.ours"))
    numbers = iter(range(1_000_000))

    def java_table() -> Any:
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            session, "java_rest.bench.java"
        )

    loaded = java_table()

    def our_commit() -> None:
        path = f"{handle.location}/data/{next(numbers)}.parquet"
        handle.files.fast_append(
            [
                DataFile(
                    content=Content.DATA, file_path=path, file_format="parquet", spec_id=0,
                    partition=(), record_count=1, file_size_in_bytes=1000,
                )
            ]
        )  # fmt: skip

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
    table = lake.load_table("bench.ours")
    return {
        "warm load": (lambda: lake.load_table("bench.ours"), java_table),
        "warm append of 1 000 rows": (
            lambda: table.append(rows()),
            lambda: rows().writeTo("java_rest.bench.java").append(),
        ),
        "warm commit": (our_commit, java_commit),
    }
