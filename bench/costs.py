"""What operations on metadata cost at four sizes: requests, bytes, CPU seconds, memory.

`python -m bench.costs` measures all of them and writes `bench/results/costs.json`, which
`bench/cost_model.py` reads; `files`, `snapshots`, `columns` or `writers` measures these alone, and
with a number one size, which is only shown.
`make bench ONLY=costs` measures all and says how far off the model is at the largest sizes.

Each operation at each size runs in a process of its own, in which it ran on a small table before.
Memory is the peak of its first run above what was there then. Allocators give back what is left at
once: Polars keeps it for half a second by default, so that what is garbage is in the peak of a step
that takes less, and is not in that of one that takes more. Seconds are the median of as many runs
as fit into `_LONG_ENOUGH`.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bench.context import Context
from bench.cost_model import MOST_WRONG, RESULTS, Measured, predictions
from bench.figures import Figure, limit
from bench.slopes_cost import resident_memory
from bench.slopes_data import data_file, write_table_of_links, write_table_of_snapshots
from bench.slopes_wide_data import write_table_of_columns, write_table_of_partitions
from frazil.catalog.metadata_files import read_metadata
from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.catalog.registration import register_table
from frazil.format.manifests import DataFile
from frazil.format.predicates.bind import bind
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.format.predicates.sql.parse import parse_predicate
from frazil.planning.counts.rows import count_rows
from frazil.planning.plan import plan
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle
from frazil.table.maintenance.optimizing.look import look

Step = Callable[[], object]

FILES: Final = (2_000_000, 3_000_000, 4_000_000, 16_000_000)
"""The largest in 3 200 manifests. Fewer fit into the cache of manifests: another line of memory."""
SNAPSHOTS: Final = (16_000, 32_000, 64_000, 192_000)
"""Many: from some ten thousand on Python looks at all objects again as they grow by a quarter."""
COLUMNS: Final = (1_000, 1_500, 2_000, 6_000)
"""Of fewer all files are in one manifest, which one thread decodes: another line of memory."""
WRITERS: Final = (1, 2, 4, 8)
_COMMITS: Final = 12
"""Of each writer."""
_PARTITION: Final = 3
_OF_LINKS: Final = 500_000
"""Tables of links have a multiple of so many files."""
_LONG_ENOUGH: Final = 2.0
_MOST_RUNS: Final = 41
_GIVES_BACK: Final = {
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "MALLOC_ARENA_MAX": "1",
}
"""What lets Polars, Arrow and the C library give memory back to the system at once."""
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


@dataclass(frozen=True, slots=True)
class Operation:
    """What is done to a table.

    Attributes:
        name: of it.
        prepare: gives what is measured, of a lake's folder, a metadata file and its files.
        once: whether the table is another one thereafter; such a one comes last.
    """

    name: str
    prepare: Callable[[Path, str, FileIO], Step]
    once: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """Operations by the size of a table.

    Attributes:
        write: makes a table of a size in a folder; its metadata file.
        small: the size of the table on which an operation runs before.
        sizes: of the tables on which it is measured.
        operations: on tables that are made once of each size.
    """

    write: Callable[[Path, int], str]
    small: int
    sizes: tuple[int, ...]
    operations: tuple[Operation, ...]


def _planned(predicate: str | None) -> Callable[[Path, str, FileIO], Step]:
    def prepare(folder: Path, made: str, io: FileIO) -> Step:
        metadata = read_metadata(io, made)
        snapshot = metadata.current_snapshot
        if predicate is None:
            return lambda: plan(metadata, snapshot, io)
        where = bind(parse_predicate(predicate), metadata.schema)
        return lambda: plan(metadata, snapshot, io, where=where)

    return prepare


def _counted(folder: Path, made: str, io: FileIO) -> Step:
    metadata = read_metadata(io, made)
    snapshot = metadata.current_snapshot
    return lambda: count_rows(
        metadata,
        snapshot,
        io,
        where=AlwaysTrue(),
        schema=metadata.schema,
        whole_plan=lambda: plan(metadata, snapshot, io),
    )


def _looked_at(folder: Path, made: str, io: FileIO) -> Step:
    metadata = read_metadata(io, made)
    return lambda: look(metadata, io)


def _appended(folder: Path, made: str, io: FileIO) -> Step:
    table = _registered(folder, io, made)
    return lambda: table.files.append([data_file(table.location, 1)])


def _fast_appended(folder: Path, made: str, io: FileIO) -> Step:
    table = _registered(folder, io, made)
    return lambda: table.files.fast_append([data_file(table.location, 1)])


def _opened(folder: Path, made: str, io: FileIO) -> Step:
    return lambda: read_metadata(io, made)


def _expired(folder: Path, made: str, io: FileIO) -> Step:
    table = _registered(folder, io, made)
    return lambda: table.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=1)


def _files(folder: Path, files: int) -> str:
    """So many files, 5 000 a manifest, in 1 000 partitions."""
    if files < _OF_LINKS:
        return write_table_of_partitions(folder, partitions=files)
    return write_table_of_links(folder, files=files)


def _snapshots(folder: Path, snapshots: int) -> str:
    return write_table_of_snapshots(folder, snapshots=snapshots, shared=True)


def _columns(folder: Path, columns: int) -> str:
    """So many columns, with bounds of each in 200 files."""
    return write_table_of_columns(folder, columns=columns, files=200)


SERIES: Final[Mapping[str, Series]] = {
    "files": Series(
        _files,
        1_000,
        FILES,
        (
            Operation("plan one partition", _planned(f"part = {_PARTITION}")),
            Operation("count from metadata", _counted),
            Operation("plan all", _planned(None)),
            Operation("look for maintenance", _looked_at),
            Operation("append", _appended),
        ),
    ),
    "snapshots": Series(
        _snapshots,
        10,
        SNAPSHOTS,
        (
            Operation("open", _opened),
            Operation("append", _fast_appended),
            Operation("expire all but one", _expired, once=True),
        ),
    ),
    "columns": Series(
        _columns,
        10,
        COLUMNS,
        (
            Operation("open", _opened),
            Operation("plan by bounds", _planned("c7 between 5 and 9")),
        ),
    ),
}


def _of_writers(folder: Path, writers: int) -> Measured:
    """Commits by so many processes at once, on a file system: what one of them cost.

    Memory is the most that one of them took.
    """
    io = FileIO()
    made = write_table_of_snapshots(folder / "lake" / "bench" / "t", snapshots=1, shared=True)
    _registered(folder, io, made).set_properties(_PATIENT)
    program = [sys.executable, "-m", "bench.costs", "writer", str(folder), made]
    running = [
        subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **_GIVES_BACK},
        )
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
    memory = max(each.pop("memory") for each in told)
    commits = writers * _COMMITS
    totals = {name: sum(each[name] for each in told) / commits for name in told[0]}
    return Measured("a commit", "writers", writers, memory=memory, **totals)


def _write(folder: Path, made: str) -> dict[str, float]:
    """Commit as one of several writers; what all of its commits cost."""
    io = MeteredIO()
    table = _registered(folder, io, made)

    def commit(number: int) -> None:
        path = f"{table.location}/data/{os.getpid()}-{number}.parquet"
        file = DataFile(file_path=path, partition=(0,), record_count=1, file_size_in_bytes=1_000)
        table.files.fast_append([file])

    # A first call pays for imports.
    commit(_COMMITS)
    print("ready", flush=True)
    sys.stdin.readline()
    io.requests = io.bytes = 0
    with _Peak() as peak:
        before = time.process_time()
        for number in range(_COMMITS):
            commit(number)
        seconds = time.process_time() - before
    return {"requests": io.requests, "bytes": io.bytes, "seconds": seconds, "memory": peak.memory}


class _Peak:
    """The memory that this process takes at most above what it has, in MB."""

    memory = 0.0

    def __enter__(self) -> _Peak:
        gc.collect()
        self._resident = resident_memory("VmRSS")
        # Makes what is resident now the peak of the process.
        Path("/proc/self/clear_refs").write_text("5")
        return self

    def __exit__(self, *raised: object) -> None:
        self.memory = max(0.0, resident_memory("VmHWM") - self._resident)


def _registered(folder: Path, io: FileIO, made: str) -> TableHandle:
    catalog = FilesystemCatalog("bench", {"warehouse": str(folder / "lake")}, io=io)
    if not catalog.namespace_exists("bench"):
        catalog.create_namespace("bench")
    name = f"bench.{Path(made).parent.parent.name}"
    if not catalog.table_exists(name):
        register_table(catalog, name, made)
    return TableHandle(catalog, catalog.load_table(name))


def _measured(by: str, name: str, size: int, folder: Path, small: str, made: str) -> Measured:
    """An operation at one size, in this process."""
    operation = next(each for each in SERIES[by].operations if each.name == name)
    # A first call pays for imports.
    operation.prepare(folder, small, FileIO())()
    io = MeteredIO()
    step = operation.prepare(folder, made, io)
    seconds: list[float] = []
    first: dict[str, float] = {}
    while not seconds or (
        not operation.once and sum(seconds) < _LONG_ENOUGH and len(seconds) < _MOST_RUNS
    ):
        io.caches.clear()
        io.requests = io.bytes = 0
        with _Peak() as peak:
            before = time.process_time()
            step()
            seconds.append(time.process_time() - before)
        first = first or {"requests": io.requests, "bytes": io.bytes, "memory": peak.memory}
    return Measured(name, by, size, seconds=statistics.median(seconds), **first)


def _apart(*words: object) -> Measured:
    """What another process measures, which keeps no other operation's memory."""
    program = [sys.executable, "-m", "bench.costs", "measure", *map(str, words)]
    environment = {**os.environ, **_GIVES_BACK}
    ran = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return Measured(**json.loads(ran.stdout))


SIZES: Final = {**{by: series.sizes for by, series in SERIES.items()}, "writers": WRITERS}


def _of_series(by: str, sizes: Iterable[int]) -> Iterator[Measured]:
    """Each operation at each size."""
    folder = Path(tempfile.mkdtemp(prefix="frazil-costs-"))
    try:
        for size in sizes:
            if by == "writers":
                yield _of_writers(folder / str(size), size)
                continue
            series, lake = SERIES[by], folder / f"{by}-{size}"
            small, made = (
                series.write(lake / "lake" / "bench" / f"t{each}", each)
                for each in (series.small, size)
            )
            for operation in series.operations:
                yield _apart(by, operation.name, size, lake, small, made)
            shutil.rmtree(lake)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(names: Iterable[str]) -> Iterator[Measured]:
    """Measure these series, or all of them, and keep what was found in place of what there was."""
    chosen = [*names] or [*SIZES]
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    found = [each for each in kept if each["by"] in SIZES and each["by"] not in chosen]
    for name in chosen:
        for each in _of_series(name, SIZES[name]):
            found.append(asdict(each))
            yield each
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def run(context: Context) -> Iterator[Figure]:
    """How far off the model is at the largest sizes, of what is measured now."""
    for each in predictions(list(measure(()))):
        name = f"the model of: {each.operation}, {each.size:,} {each.by}, {each.what}"
        yield limit(name, each.error, MOST_WRONG, unit="of it")


def main() -> None:
    """Measure and write; see the module's text."""
    match sys.argv[1:]:
        case ["writer", folder, made]:
            print(json.dumps(_write(Path(folder), made)))
        case ["measure", by, name, size, folder, small, made]:
            told = _measured(by, name, int(size), Path(folder), small, made)
            print(json.dumps(asdict(told)))
        case [by, size] if size.isdigit():
            for each in _of_series(by, [int(size)]):
                print(each, flush=True)
        case names:
            for each in measure(names):
                print(each, flush=True)


if __name__ == "__main__":
    main()
