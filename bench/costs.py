"""What operations on metadata cost at four sizes: requests, bytes, CPU seconds, memory; no Spark.

`python -m bench.costs` measures all of them and writes
`bench/results/costs.json`, which `bench/cost_model.py` reads; a name measures that operation alone.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

from bench.cost_model import RESULTS, Measured
from bench.slopes_cost import resident_memory
from bench.slopes_data import data_file, write_table_of_links, write_table_of_snapshots
from bench.slopes_wide_data import write_table_of_columns, write_table_of_partitions
from frazil.catalog.metadata_files import read_metadata
from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.catalog.registration import register_table
from frazil.format.manifests import DataFile
from frazil.format.predicates.bind import bind
from frazil.format.predicates.sql.parse import parse_predicate
from frazil.planning.plan import plan
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle
from frazil.table.maintenance.optimizing.look import look

T = TypeVar("T")
Step = Callable[[], object]

FILES: Final = (500_000, 1_000_000, 1_500_000, 3_000_000)
SNAPSHOTS: Final = (16_000, 32_000, 64_000, 128_000)
"""Many: from some ten thousand on Python looks at all objects again as they grow by a quarter."""
COLUMNS: Final = (500, 1_000, 2_000, 4_000)
WRITERS: Final = (1, 2, 4, 8)
_COMMITS: Final = 6
"""Of each writer."""
_PARTITION: Final = 3
_WARM: Final = {"files": 1_000, "snapshots": 10, "columns": 10}
"""A first call pays for imports, so each operation runs once on a small table before."""
_PATIENT: Final = {
    "commit.retry.num-retries": "100",
    "commit.retry.min-wait-ms": "10",
    "commit.retry.max-wait-ms": "200",
}


class MeteredIO(FileIO):
    """Files that count the requests of a store and the bytes that they carry."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = self.bytes = 0
        self._counts = threading.Lock()

    def _run(self, verb: str, path: str, on_disk: Any, on_store: Any) -> Any:
        found = super()._run(verb, path, on_disk, on_store)
        self._count(1, len(found) if isinstance(found, bytes) else 0)
        return found

    def create(self, path: str, data: bytes) -> None:
        """Count and write."""
        self._count(0, len(data))
        super().create(path, data)

    def create_unique(self, path: str, data: bytes) -> None:
        """Count and write."""
        self._count(0, len(data))
        super().create_unique(path, data)

    def _count(self, requests: int, size: int) -> None:
        with self._counts:
            self.requests += requests
            self.bytes += size


def of_files(folder: Path, files: int) -> Iterator[tuple[str, MeteredIO, Step]]:
    """Operations on a table of so many files, 5 000 a manifest, in 1 000 partitions."""
    place = folder / "lake" / "bench" / f"t{files}"
    made = (
        write_table_of_partitions(place, partitions=files)
        if files == _WARM["files"]
        else write_table_of_links(place, files=files)
    )
    io = MeteredIO()
    metadata = read_metadata(io, made)
    snapshot = metadata.current_snapshot
    where = bind(parse_predicate(f"part = {_PARTITION}"), metadata.schema)
    table = _registered(folder, io, made)
    yield "plan one partition", io, lambda: plan(metadata, snapshot, io, where=where)
    yield "plan all", io, lambda: plan(metadata, snapshot, io)
    yield "look for maintenance", io, lambda: look(metadata, io)
    yield "append", io, lambda: table.files.append([data_file(table.location, 1)])


def of_snapshots(folder: Path, snapshots: int) -> Iterator[tuple[str, MeteredIO, Step]]:
    """Operations on a table of so many snapshots."""
    place = folder / "lake" / "bench" / f"t{snapshots}"
    made = write_table_of_snapshots(place, snapshots=snapshots, shared=True)
    io = MeteredIO()
    yield "open", io, lambda: read_metadata(io, made)
    table = _registered(folder, io, made)
    yield "append", io, lambda: table.files.fast_append([data_file(table.location, 1)])


def of_columns(folder: Path, columns: int) -> Iterator[tuple[str, MeteredIO, Step]]:
    """Operations on a table of 200 files of so many columns, with bounds of each."""
    place = folder / "lake" / "bench" / f"t{columns}"
    made = write_table_of_columns(place, columns=columns, files=200)
    io = MeteredIO()
    metadata = read_metadata(io, made)
    where = bind(parse_predicate("c7 between 5 and 9"), metadata.schema)
    yield "open", io, lambda: read_metadata(io, made)
    yield "plan by bounds", io, lambda: plan(metadata, metadata.current_snapshot, io, where=where)


def of_writers(folder: Path, writers: int) -> Measured:
    """Commits by so many processes at once, on a file system: what one of them cost."""
    catalog = FilesystemCatalog("bench", {"warehouse": str(folder / "lake")}, io=FileIO())
    catalog.create_namespace("bench")
    made = write_table_of_snapshots(folder / "lake" / "bench" / "t", snapshots=1, shared=True)
    register_table(catalog, "bench.t", made)
    TableHandle(catalog, catalog.load_table("bench.t")).set_properties(_PATIENT)
    program = [sys.executable, "-m", "bench.costs", "writer", str(folder / "lake")]
    running = [
        subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(writers)
    ]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()
    # All are ready: now they are told to begin.
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [json.loads(process.communicate()[0]) for process in running]
    commits = writers * _COMMITS
    totals = {name: sum(each[name] for each in told) / commits for name in told[0]}
    return Measured("a commit", "writers", writers, memory=0.0, **totals)


_PARTS: Final = {
    "files": (of_files, FILES),
    "snapshots": (of_snapshots, SNAPSHOTS),
    "columns": (of_columns, COLUMNS),
}


def _registered(folder: Path, io: FileIO, made: str) -> TableHandle:
    catalog = FilesystemCatalog("bench", {"warehouse": str(folder / "lake")}, io=io)
    catalog.namespace_exists("bench") or catalog.create_namespace("bench")
    name = f"bench.{Path(made).parent.parent.name}"
    register_table(catalog, name, made)
    return TableHandle(catalog, catalog.load_table(name))


def _measured(by: str, size: int, folder: Path) -> Iterator[Measured]:
    """Each operation at one size, in this process."""
    for name, io, step in _PARTS[by][0](folder, size):
        io.caches.clear()
        io.requests = io.bytes = 0
        gc.collect()
        # The allocator of Polars gives pages back half a second after they were left.
        time.sleep(1)
        ctypes.CDLL(None).malloc_trim(0)
        resident = resident_memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")
        before = time.process_time()
        step()
        seconds = time.process_time() - before
        memory = max(0.0, resident_memory("VmHWM") - resident)
        yield Measured(name, by, size, io.requests, io.bytes, seconds, memory)


def _write(lake: str) -> dict[str, float]:
    """Commit as one of several writers; what all of its commits cost."""
    io = MeteredIO()
    catalog = FilesystemCatalog("bench", {"warehouse": lake}, io=io)
    table = TableHandle(catalog, catalog.load_table("bench.t"))
    print("ready", flush=True)
    sys.stdin.readline()
    io.requests = io.bytes = 0
    before = time.process_time()
    for number in range(_COMMITS):
        path = f"{table.location}/data/{os.getpid()}-{number}.parquet"
        file = DataFile(file_path=path, partition=(0,), record_count=1, file_size_in_bytes=1_000)
        table.files.fast_append([file])
    seconds = time.process_time() - before
    return {"requests": io.requests, "bytes": io.bytes, "seconds": seconds}


def _apart(by: str, size: int) -> list[Measured]:
    """Each operation at one size, in a process of its own, which keeps no other size's memory."""
    program = [sys.executable, "-m", "bench.costs", by, str(size)]
    told = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [Measured(**each) for each in json.loads(told)]


def main() -> None:
    """Measure and write; see the module's text."""
    folder = Path(tempfile.mkdtemp(prefix="frazil-costs-"))
    try:
        match sys.argv[1:]:
            case ["writer", lake]:
                print(json.dumps(_write(lake)))
            case ["writers", size]:
                print(json.dumps([asdict(of_writers(folder, int(size)))]))
            case [by, size]:
                deque(_measured(by, _WARM[by], folder), maxlen=0)
                print(json.dumps([asdict(each) for each in _measured(by, int(size), folder)]))
            case names:
                sizes = {name: sizes for name, (_, sizes) in _PARTS.items()} | {"writers": WRITERS}
                chosen = names or list(sizes)
                kept = json.loads(RESULTS.read_text()) if names and RESULTS.exists() else []
                found = [each for each in kept if each["by"] not in chosen]
                for name in chosen:
                    for each in (each for size in sizes[name] for each in _apart(name, size)):
                        print(each, flush=True)
                        found.append(asdict(each))
                RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
