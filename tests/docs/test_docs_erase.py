"""What the page about erasure defines leaves no byte of a value: looked for in every file."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import zstandard
from fastavro import block_reader
from pages import ROOT, blocks_of

import frazil

pytestmark = pytest.mark.check

PERSON = "erika.m@example.org"
# Bounds of text are cut at 16 characters, and folders write @ in another way.
LOOKED_FOR = PERSON.split("@")[0].encode()
FRAME = b"\x28\xb5\x2f\xfd"
"""With what each page of a Parquet file compressed by zstd begins."""
ROWS = """
    select id, if(id = 7, '{person}', concat('p', id, '@example.org')) as email, 'Oslo' as city
    from range({first}, {last})"""


def unpacked(path: Path) -> Iterator[bytes]:
    """The bytes of a file: as they are, and of each compressed part of it."""
    stored = path.read_bytes()
    yield stored
    if path.suffix == ".avro":
        yield from (block.bytes_.getvalue() for block in block_reader(io.BytesIO(stored)))
    place = stored.find(FRAME)
    while place >= 0:
        # Four bytes of something else may look like the beginning of a page.
        with suppress(zstandard.ZstdError):
            yield zstandard.ZstdDecompressor().decompressobj().decompress(stored[place:])
        place = stored.find(FRAME, place + 1)
    if stored[:2] == b"\x1f\x8b":
        yield zlib.decompress(stored, 31)


def traces(folder: Path) -> list[str]:
    """The files that hold the value somewhere, and folders that are named by it."""
    return [
        path.name
        for path in sorted(folder.rglob("*"))
        if LOOKED_FOR in path.name.encode()
        or (path.is_file() and any(LOOKED_FOR in part for part in unpacked(path)))
    ]


@pytest.fixture(scope="module")
def erase() -> Any:
    """The function of the page."""
    [block] = [
        block
        for block in blocks_of(ROOT / "docs" / "howto" / "erase.md")
        if "def erase(" in block.text
    ]
    names: dict[str, Any] = {"frazil": frazil}
    exec(block.text.split("\nerase(")[0], names)
    return names["erase"]


def filled(spark: Any, lake: Any, **definition: Any) -> Any:
    """A table with the person's row in a file among others, and in one that a later append made."""
    table = lake.create_table("db.people", "id bigint, email string, city string", **definition)
    table.append(spark.sql(ROWS.format(person=PERSON, first=0, last=6)))
    table.append(spark.sql(ROWS.format(person=PERSON, first=6, last=9)))
    return table


def in_branches(spark: Any, lake: Any) -> Any:
    """Copy-on-write; a tag, a branch that keeps its history, a staged snapshot, statistics."""
    table = filled(spark, lake, properties={"write.metadata.compression-codec": "gzip"})
    table.create_tag("end-of-year")
    table.create_branch("audit", retention=frazil.Retention(min_snapshots_to_keep=9))
    table.append(spark.sql(ROWS.format(person=PERSON, first=7, last=8)), branch="audit")
    table.maintenance.compute_table_stats()
    return table


def with_equality_deletes(spark: Any, lake: Any) -> Any:
    """Merge-on-read by vectors and by keys, of which one is the person's; two specs."""
    table = filled(
        spark,
        lake,
        partition_by=["bucket(2, id)"],
        format_version=3,
        properties={"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"},
    )
    table.update(set={"city": "'Rome'"}, where="id = 7")
    with table.update_spec() as change:
        change.remove_field("id_bucket_2" if "id_bucket_2" in str(table.spec) else "id_bucket")
    changed = spark.sql(f"select 7L as id, '{PERSON}' as email, 'Bern' as city")
    table.apply_changes(changed, keys="email", mode="equality-deletes")
    return table


def by_the_value(spark: Any, lake: Any) -> Any:
    """Partitioned by the value: whole files go, and summaries name the partitions."""
    return filled(
        spark,
        lake,
        partition_by=["email"],
        properties={"write.summary.partition-limit": "100"},
    )


def of_one_person(spark: Any, lake: Any) -> Any:
    """No row and no file is left, in version 1."""
    table = lake.create_table("db.people", "id bigint, email string, city string", format_version=1)
    table.append(spark.sql(ROWS.format(person=PERSON, first=7, last=8)))
    return table


@pytest.mark.parametrize("made", [in_branches, with_equality_deletes, by_the_value, of_one_person])
def test_no_byte_of_an_erased_value_is_left(
    spark: Any, lake: Any, tmp_path: Path, erase: Any, made: Any
) -> None:
    table = made(spark, lake)
    folder = tmp_path / "lake"
    count = table.count()
    assert {Path(name).suffix for name in traces(folder)} >= {".parquet", ".avro"}

    erase(table, f"email = '{PERSON}'")

    left = [path for path in folder.rglob("*") if path.is_dir() and not any(path.iterdir())]
    for path in left:
        path.rmdir()
    assert traces(folder) == []
    assert lake.load_table("db.people").count() == count - 1
    assert table.maintenance.check().is_sound
