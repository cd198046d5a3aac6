"""Deleting many files beside the session and by executors: both sides of `costs.DELETED_FILES`.

python -m bench.deleting --files 20000
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from bench.figures import line, report
from bench.sessions import start
from frazil.spark.maintenance import deleting
from frazil.spark.session import costs
from frazil.storage.files import FileIO
from frazil.table.maintenance.progress import Deleting

ROUNDS = 4
THREADS = 16


def main() -> None:
    """Print the seconds that as many small files of a local disk take, either way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    count = parser.parse_args().files
    folder = Path(tempfile.mkdtemp(prefix="frazil-bench-"))
    spark = start(folder)
    try:
        delete = deleting.deleting_by(spark, FileIO(), threads=THREADS)
        for name, most in (("beside the session", count), ("by executors", 0)):
            costs.DELETED_FILES = most  # type: ignore[misc]
            taken = []
            for _ in range(ROUNDS):
                paths = [_put(folder / f"{number:08}") for number in range(count)]
                started = time.perf_counter()
                failures = delete(paths, Deleting(lambda _: None, count))
                taken.append(time.perf_counter() - started)
                if failures or any(Path(path).exists() for path in paths):
                    raise AssertionError(f"files are left: {failures}")
            title = f"delete {count:,} files, {name}"
            print(line(report(title, statistics.median(taken[1:]), unit="s")))
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _put(path: Path) -> str:
    path.write_bytes(b"1")
    return str(path)


if __name__ == "__main__":
    main()
