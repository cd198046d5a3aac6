"""`python -m bench`: every figure, or one of them, as lines and as JSON."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import frazil
from bench import (
    catalogs,
    cdc,
    cdc_postgres,
    changelog,
    changes,
    commits,
    contention,
    costs,
    deletes,
    equality,
    maintenance,
    matching,
    planning,
    scans,
    slopes,
    small,
    sources,
    sql,
    starting,
    stores,
    streams,
    upserted,
    writes,
)
from bench.context import CATALOG, Context
from bench.figures import Figure, line, write_json
from bench.sessions import start

MEASUREMENTS: dict[str, Callable[[Context], Iterator[Figure]]] = {
    "scan": scans.run,
    "append": writes.run,
    "small": small.run,
    "starting": starting.run,
    "planning": planning.run,
    "catalogs": catalogs.run,
    "commits": commits.run,
    "contention": contention.run,
    "costs": costs.run,
    "deletes": deletes.run,
    "matching": matching.run,
    "changelog": changelog.run,
    "changes": changes.run,
    "cdc": cdc.run,
    "cdc_postgres": cdc_postgres.run,
    "stores": stores.run,
    "streams": streams.run,
    "equality": equality.run,
    "slopes": slopes.run,
    "sources": sources.run,
    "sql": sql.run,
    "maintenance": maintenance.run,
    "upserted": upserted.run,
}
ON_EVERY_SPARK = ("scan", "append", "small", "sources")


def main() -> int:
    """0 when every bar holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sorted(MEASUREMENTS), help="one measurement")
    with_parts = (catalogs, changes, contention, sql, maintenance, stores)
    parts = sorted({part for measurement in with_parts for part in measurement.PARTS})
    parser.add_argument("--part", choices=parts, help="one part of a measurement that has several")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the big tables")
    parser.add_argument("--rounds", type=int, default=3, help="of changes and maintenance; 0: cold")
    parser.add_argument("--row", type=int, choices=sorted(slopes.ROWS), help="one row of slopes")
    parser.add_argument("--large", action="store_true", help="the largest tables of slopes too")
    parser.add_argument("--json", type=Path, default=Path("bench-results.json"))
    parser.add_argument("--add", action="store_true", help="keep other figures of the JSON")
    parser.add_argument("--python43", help="a Python with Spark 4.3, to measure Frazil alone there")
    options = parser.parse_args()
    names = [options.only] if options.only else list(MEASUREMENTS)

    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))
    figures: list[Figure] = []
    memory = slopes.HEAPS.get(options.row, "6g") if names == ["slopes"] else "6g"
    spark = start(folder, memory=memory, on_stores="stores" in names)
    try:
        with frazil.connect(spark, warehouse=str(folder), name=CATALOG) as lake:
            lake.create_namespace("bench")
            context = Context(
                spark,
                lake,
                folder,
                options.rows,
                rounds=options.rounds,
                part=options.part,
                row=options.row,
                large=options.large,
            )
            for name in names:
                for figure in MEASUREMENTS[name](context):
                    figures.append(figure)
                    print(line(figure), flush=True)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    write_json(figures, options.json, adds=options.add)
    held = all(figure.holds for figure in figures)

    if options.python43:
        for name in (name for name in names if name in ON_EVERY_SPARK):
            json = options.json.with_stem(f"{options.json.stem}-43-{name}")
            ran = subprocess.run(
                [
                    options.python43,
                    "-m",
                    "bench",
                    "--only",
                    name,
                    "--rows",
                    str(options.rows),
                    "--json",
                    str(json),
                ],
                check=False,
            )
            held = held and ran.returncode == 0
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
