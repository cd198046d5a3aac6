"""A table of made-up files, for commands that look at metadata: every output but ids is fixed."""

from __future__ import annotations

import re
import shutil
import struct
import tempfile
from pathlib import Path

from frazil.catalog.config import load_catalog
from frazil.format.manifests import DataFile
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import spec_for
from frazil.format.schema import Schema
from frazil.format.schema.types_json import parse_type
from frazil.format.sorting import order_for
from frazil.table.handle import TableHandle
from frazil.table.updates.references import Retention

STRUCT = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long", "doc": "the key of a trip"},
        {"id": 2, "name": "city", "required": False, "type": "string"},
        {"id": 3, "name": "fare", "required": False, "type": "decimal(9, 2)"},
        {"id": 4, "name": "ts", "required": False, "type": "timestamptz"},
        {
            "id": 5,
            "name": "stops",
            "required": False,
            "type": {
                "type": "list",
                "element-id": 6,
                "element-required": False,
                "element": {
                    "type": "struct",
                    "fields": [
                        {"id": 7, "name": "place", "required": False, "type": "string"},
                        {"id": 8, "name": "minutes", "required": False, "type": "int"},
                    ],
                },
            },
        },
    ],
}
LONGEST = 10**18
"""Ids from here on have nineteen digits, so that columns are as wide in every run."""


def make_told_table() -> tuple[Path, TableHandle]:
    """A warehouse whose path is always as long, and db.trips in it with three snapshots."""
    folder = Path(tempfile.mkdtemp(prefix="lake-", dir="/tmp"))
    catalog = load_catalog(warehouse=str(folder))
    catalog.create_namespace("db")
    catalog.create_namespace("staging")
    while True:
        table = _make(catalog)
        if all(each.snapshot_id >= LONGEST for each in table.metadata.snapshots):
            return folder, table
        catalog.drop_table("db.trips")
        shutil.rmtree(folder / "db" / "trips")


def _make(catalog) -> TableHandle:
    schema = Schema(parse_type(STRUCT).fields)
    metadata = new_table_metadata(
        schema,
        spec_for(schema, ["month(ts)", "city"]),
        order_for(schema, ["ts desc nulls last"]),
        location=catalog.default_table_location("db.trips"),
        properties={"owner": "the dispatch team", "write.target-file-size-bytes": "134217728"},
    )
    table = TableHandle(catalog, catalog.create_table("db.trips", metadata))
    table.files.append([data_file(1, "Oslo", 1_000), data_file(2, "Lima", 20)])
    table.create_tag("v1", retention=Retention(max_ref_age_ms=90 * 86_400_000))
    table.files.append([data_file(3, "São Paulo", 1_234_567)])
    table.create_branch(
        "audit", retention=Retention(min_snapshots_to_keep=5, max_snapshot_age_ms=90_000_000)
    )
    table.files.delete(where="city = 'Lima'")
    return table


def data_file(number: int, city: str, rows: int) -> DataFile:
    """A file that nobody reads."""
    name = f"00000-{number}-5d1c9b6e-3c1f-4f0e-9c53-1f2d6c0ba7a{number}-0.zstd.parquet"
    return DataFile(
        file_path=f"file:///warehouse/db/trips/data/ts_month=2024-03/city={city}/{name}",
        record_count=rows,
        file_size_in_bytes=rows * 97,
        spec_id=0,
        partition=(650, city),
        value_counts={1: rows},
        null_value_counts={1: 0},
        lower_bounds={1: struct.pack("<q", 0)},
        upper_bounds={1: struct.pack("<q", rows)},
    )


def masked(text: str, table: TableHandle, folder: Path) -> str:
    """The text with what differs from run to run replaced by as many characters."""
    for number, snapshot in enumerate(table.metadata.snapshots, 1):
        text = text.replace(str(snapshot.snapshot_id), str(number) * 19)
    text = text.replace(str(folder), "/tmp/lake-" + "_" * (len(str(folder)) - len("/tmp/lake-")))
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z", "2024-03-31 23:59:59.999Z", text)
    uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    kept = "5d1c9b6e-"
    return re.sub(uuid, lambda m: m[0] if m[0].startswith(kept) else re.sub(r"\w", "x", m[0]), text)
