"""`python -m bench.equality_memory frazil|java <folder> <rows>`: one engine in 1 GB.

Prints the seconds as JSON; fails if the read fails or other rows are left.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import frazil
from bench.context import CATALOG, run_all
from bench.equality import MANY
from bench.equality_data import TABLE
from bench.sessions import start


def main() -> int:
    """0 when the rows are right."""
    engine, folder, rows = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    spark = start(folder, memory="1g")
    try:
        with frazil.connect(spark, warehouse=str(folder), name=CATALOG) as lake:
            started = time.perf_counter()
            if engine == "java":
                df = spark.read.option("branch", MANY).table(f"{CATALOG}.{TABLE}")
            else:
                df = lake.load_table(TABLE).scan(ref=MANY).to_df()
            run_all(df)
            found = df.count()
            seconds = time.perf_counter() - started
    finally:
        spark.stop()
    if found != rows:
        print(f"{found} rows are left, not {rows}", file=sys.stderr)
        return 1
    print(json.dumps({"seconds": seconds}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
