"""Catalogs beside Java's on servers of their own: a Hive metastore, and a folder of an HDFS.

A warm load, and an append of 1 000 rows, on a table of some snapshots. `make catalogs` gets the
servers; where one cannot be had that is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.catalogs.hdfs_server import hdfs
from interop.catalogs.hive_server import metastore, properties_of

import frazil
from bench.catalog_sides import grow, load_and_append, set_java_catalog
from bench.context import Context
from bench.figures import Bar, Figure, compare, interleaved
from bench.rows import FLAT_DDL

ROUNDS = 25
SNAPSHOTS = 50
NO_SLOWER = Bar(at_most=1.0)
SHORT_WAIT = ("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", "20")
"""Where the data node's word of a block comes later than the client's, a file waits 400 ms to be
closed, on either side by chance."""
HIVE = "3.1.3"
"""The newest that Java's client in Spark can load tables from."""


def run(context: Context, folder: Path) -> Iterator[Figure]:
    """Each catalog against Java's."""
    for name, figures in PARTS.items():
        if context.part not in (None, name):
            continue
        try:
            yield from figures(context, folder)
        except pytest.skip.Exception as without:
            print(f"catalogs: {without}")


def _on_hive(context: Context, folder: Path) -> Iterator[Figure]:
    with metastore(HIVE, folder / "hive") as server:
        properties = properties_of(server)
        yield from _beside_java(context, f"Hive {HIVE}", "java_hive", properties, properties)


def _on_hdfs(context: Context, folder: Path) -> Iterator[Figure]:
    place = folder / "hdfs"
    place.mkdir()
    context.spark.conf.set(*SHORT_WAIT)
    with hdfs(place) as server:
        warehouse = f"{server.uri}/lake"
        ours = {"type": "filesystem", "warehouse": warehouse, "io": "hadoop"}
        theirs = {"type": "hadoop", "warehouse": warehouse}
        yield from _beside_java(context, "HDFS", "java_hdfs", ours, theirs)


def _beside_java(
    context: Context, title: str, java: str, ours: dict[str, str], theirs: dict[str, str]
) -> Iterator[Figure]:
    set_java_catalog(context, java, theirs)
    with frazil.connect(context.spark, name=f"our_{java}", **ours) as lake:
        lake.create_namespace("bench")
        for name in ("bench.ours", "bench.java"):
            grow(lake.create_table(name, FLAT_DDL), SNAPSHOTS)
        sides = load_and_append(context, lake, "bench.ours", f"{java}.bench.java")
        for work, (our, their) in sides.items():
            took = interleaved({"ours": our, "java": their}, rounds=ROUNDS, warm=5)
            name = f"{work}, {SNAPSHOTS} snapshots, {title}{context.suffix}"
            yield compare(name, "Java's catalog", took["ours"], took["java"], NO_SLOWER)


PARTS = {"hive": _on_hive, "hdfs": _on_hdfs}
"""Each is one run's part by its name: `--part`."""
