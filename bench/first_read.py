"""A read of a table by a process that has read no table before: `python -m bench.first_read`.

Its arguments are the folder of the catalog, the side (`ours` or `java`), and the table. It prints
the seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import frazil
from bench.context import CATALOG, run_all
from bench.sessions import start


def in_new_process(folder: Path, side: str, table: str) -> float:
    """Return the seconds that a read takes in a process of its own, whose session is there."""
    command = [sys.executable, "-m", "bench.first_read", str(folder), side, table]
    # Modules are compiled, as those of an installed package are.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return float(ran.stdout.splitlines()[-1])


def main() -> None:
    """Read the table once, after some rows of plain Parquet."""
    folder, side, table = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    spark = start(folder)
    # What every read of Spark loads counts for neither side.
    plain = str(folder / "changes-source")
    run_all(spark.read.parquet(plain).where("id > 7"))
    started = time.perf_counter()
    if side == "java":
        run_all(spark.table(f"{CATALOG}.{table}"))
    else:
        with frazil.connect(spark, warehouse=str(folder), name=CATALOG) as lake:
            run_all(lake.load_table(table).to_df())
    print(time.perf_counter() - started)
    spark.stop()


if __name__ == "__main__":
    main()
