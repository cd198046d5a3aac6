"""Writers in processes of their own, which append files through a server and report each one.

Arguments: the catalog's properties as JSON, how many writers, how many appends of each. A line is a
file that was acknowledged, or one behind a question mark whose outcome is unknown.
"""

from __future__ import annotations

import json
import os
import sys
import traceback

from catalog_cases import opened

from frazil.catalog.protocol import Catalog
from frazil.errors import CommitStateUnknownError
from frazil.format.manifests import Content, DataFile
from frazil.table.handle import TableHandle


def main() -> None:
    properties, writers, appends = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    children = [forked(properties, number, appends) for number in range(writers)]
    ends = [os.waitpid(child, 0)[1] for child in children]
    if any(ends):
        sys.exit("a writer failed")


def forked(properties: dict[str, str], number: int, appends: int) -> int:
    """A process that appends so often."""
    child = os.fork()
    if child == 0:
        try:
            catalog = opened(properties)
            for each in range(appends):
                report(append(catalog, f"w{number}.{each}"))
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    return child


def append(catalog: Catalog, name: str) -> str:
    """Append one file; its line of the report."""
    table = TableHandle(catalog, catalog.load_table("db.t"))
    try:
        table.files.fast_append([data_file(name)])
    except CommitStateUnknownError:
        return f"?{name}"
    return name


def data_file(name: str) -> DataFile:
    """An entry of a file that nobody reads."""
    return DataFile(
        content=Content.DATA, file_path=f"/data/{name}", file_format="parquet", spec_id=0,
        partition=(), record_count=1, file_size_in_bytes=1000,
    )  # fmt: skip


def report(line: str) -> None:
    """Write a line in one step: all writers share one pipe."""
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    main()
