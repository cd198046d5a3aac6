"""Tables of millions of files of four columns, each of which has a name of its own.

Only metadata is written, some 67 bytes a file: entries of half a million files are made, and
packed again for each half a million under other names, below ``file:///lake``, where no file is.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Final

from bench.slopes_data import FILE_SIZE, metadata_file, only_snapshot
from frazil.format.manifests import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.metadata import TableMetadata
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.schema import Schema
from frazil.format.types import DoubleType, LongType, NestedField, StringType
from frazil.storage.avro import write_manifest
from frazil.storage.avro.container import read_container
from frazil.storage.avro.write import ContainerWriter
from frazil.storage.files import FileIO

MADE: Final = 500_000
PARTITIONS: Final = 1_000
PER_MANIFEST: Final = 5_000
MANY_ROWS: Final = 100_000

_COLUMNS: Final = (1, 2, 3, 4)
_NAMED: Final = b"/lake/000000/"


def write_large_table(folder: Path, *, files: int, made: int = MADE) -> str:
    """Write a table of so many files; the path of its metadata file.

    Its columns are `id`, which rises by 10 from file to file, `part` from 0 to 999, which is the
    partition, `score` and `name`, which are drawn. A manifest has 5 000 files of a few partitions.

    Args:
        made: so many files are made anew; the others are the same under other names.
    """
    if files % made:
        raise ValueError(f"{files} is no multiple of {made}")
    manifests = _made_manifests(folder.parent / f"slopes-made-{made}", made)
    metadata = _table_of_four_columns(folder)
    place = folder / "metadata"
    place.mkdir(parents=True, exist_ok=True)

    def copied(number: int) -> list[ManifestFile]:
        return _copies(manifests[number], place, number, files // made)

    # To pack takes most of the time, and leaves the interpreter alone.
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(copied, range(len(manifests))))
    written = [manifest for copies in found for manifest in copies]
    return metadata_file(folder, metadata, [only_snapshot(FileIO(), metadata, written)])


def rows_of_file(number: int) -> int:
    """How many rows the file of that number, among those that are made, has."""
    return 50_000 + number % 100 * 1_000


def rows_of_files(files: int) -> int:
    """How many rows so many hundreds of files have together."""
    return files // 100 * sum(map(rows_of_file, range(100)))


def files_of_many_rows(files: int) -> int:
    """How many of so many hundreds of files have more than `MANY_ROWS`."""
    return files // 100 * sum(rows_of_file(number) > MANY_ROWS for number in range(100))


def partition_of_file(number: int, made: int = MADE) -> int:
    """The partition of the file of that number: neighbours share one."""
    return number * PARTITIONS // made


def _copies(manifest: ManifestFile, place: Path, number: int, times: int) -> list[ManifestFile]:
    """The manifest so many times, with other names in it each time."""
    path = manifest.manifest_path
    container = read_container(Path(path.removeprefix("file://")).read_bytes(), file=path)
    header = {name: value.decode() for name, value in container.metadata.items()}
    schema = json.loads(header.pop("avro.schema"))
    del header["avro.codec"]
    found = []
    for copy in range(times):
        writer = ContainerWriter(schema, metadata=header, codec="zstd")
        for count, body in zip(container.counts, container.blocks, strict=True):
            writer.add(count, body.replace(_NAMED, b"/lake/%06d/" % copy))
        packed, target = writer.finish(), place / f"{number}-{copy}.avro"
        target.write_bytes(packed)
        named = f"file://{target.resolve()}"
        found.append(replace(manifest, manifest_path=named, manifest_length=len(packed)))
    return found


def _table_of_four_columns(folder: Path) -> TableMetadata:
    types = (LongType(), LongType(), DoubleType(), StringType())
    names = ("id", "part", "score", "name")
    schema = Schema(
        tuple(
            NestedField(i, name, kind) for i, name, kind in zip(_COLUMNS, names, types, strict=True)
        )
    )
    spec = PartitionSpec(0, (PartitionField((2,), 1000, parse_transform("identity"), "part"),))
    return new_table_metadata(schema, spec, location=f"file://{folder.resolve()}")


@lru_cache(maxsize=2)
def _made_manifests(folder: Path, made: int) -> tuple[ManifestFile, ...]:
    """The manifests that are copied."""
    metadata, io = _table_of_four_columns(folder), FileIO()
    per = min(PER_MANIFEST, made)
    return tuple(
        write_manifest(
            io,
            f"{metadata.location}/{first}.avro",
            _entries(range(first, first + per), made),
            spec=metadata.spec,
            schema=metadata.schema,
            format_version=2,
            content=ManifestContent.DATA,
            snapshot_id=1,
            codec="none",
        )
        for first in range(0, made, per)
    )


def _entries(numbers: Sequence[int], made: int) -> list[ManifestEntry]:
    drawn = Random(numbers[0])
    return [
        ManifestEntry(status=EntryStatus.ADDED, data_file=_file(number, made, drawn))
        for number in numbers
    ]


def _file(number: int, made: int, drawn: Random) -> DataFile:
    part, rows = partition_of_file(number, made), rows_of_file(number)
    lower, upper = _bounds(number, part, drawn)
    name = f"{number:07d}-{number * 2_654_435_761 % 2**32:08x}-00001.parquet"
    return DataFile(
        file_path=f"file://{_NAMED.decode()}data/part={part}/{name}",
        partition=(part,),
        record_count=rows,
        file_size_in_bytes=FILE_SIZE,
        column_sizes={i: 100_000 + number * i % 100_000 for i in _COLUMNS},
        value_counts=dict.fromkeys(_COLUMNS, rows),
        null_value_counts=dict.fromkeys(_COLUMNS, number % 10),
        lower_bounds=lower,
        upper_bounds=upper,
        split_offsets=(4,),
        sort_order_id=0,
    )


def _bounds(number: int, part: int, drawn: Random) -> tuple[dict[int, bytes], dict[int, bytes]]:
    ids = (struct.pack("<q", number * 10 + last) for last in (0, 9))
    of_part = struct.pack("<q", part)
    scores = (struct.pack("<d", end + drawn.random()) for end in (0, 1))
    names = (b"name-%011d" % (end * 10**9 + drawn.randrange(10**9)) for end in (0, 1))
    lower, upper = (
        dict(zip(_COLUMNS, ends, strict=True))
        for ends in zip(ids, (of_part, of_part), scores, names, strict=True)
    )
    return lower, upper
