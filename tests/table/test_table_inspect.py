"""The metadata tables: PyIceberg's rows. Their columns are those of the DataFrames."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.table import StaticTable
from table_cases import data_file, equality_deletes, make_table, position_deletes

from frazil.catalog.protocol import Catalog
from frazil.table.handle import TableHandle

COUNTS = [
    f"{which}_{content}_files_count"
    for content in ("data", "delete")
    for which in ("added", "existing", "deleted")
]


def busy_table(catalog: Catalog) -> TableHandle:
    """A table with some history."""
    table = make_table(catalog, files=[data_file("a", ids=(1, 5)), data_file("b", None, rows=3)])
    table.files.append([data_file("c", "tue", ids=(-7, 9))])
    table.create_tag("t")
    table.files.row_delta(added_deletes=[position_deletes("p"), equality_deletes("e", "tue")])
    table.files.delete(removed=[data_file("b", None, rows=3)])
    return table


def comparable(rows: list[dict[str, Any]], names: list[str]) -> list[str]:
    """Rows without order."""
    return sorted(str([row[name] for name in names]) for row in rows)


SAME = {
    "history": ["snapshot_id", "parent_id", "is_current_ancestor"],
    "metadata_log_entries": ["file", "latest_snapshot_id", "latest_sequence_number"],
    "snapshots": ["snapshot_id", "parent_id", "operation", "manifest_list"],
    "refs": ["name", "type", "snapshot_id", "max_reference_age_in_ms"],
    "manifests": ["path", *COUNTS],
    "files": ["content", "file_path", "record_count", "partition", "file_size_in_bytes"],
    "delete_files": ["content", "file_path", "equality_ids"],
    "all_manifests": ["path", "reference_snapshot_id"],
    "partitions": [
        "partition",
        "spec_id",
        "record_count",
        "file_count",
        "position_delete_file_count",
        "equality_delete_record_count",
        "last_updated_snapshot_id",
    ],
}


@pytest.mark.parametrize("name", SAME)
def test_rows_are_those_of_pyiceberg(files_catalog: Catalog, name: str) -> None:
    table = busy_table(files_catalog)
    theirs = getattr(StaticTable.from_metadata(table.metadata_location).inspect, name)()
    ours = getattr(table.inspect, name)()
    assert comparable(ours.to_dicts(), SAME[name]) == comparable(theirs.to_pylist(), SAME[name])
