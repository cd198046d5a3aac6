"""The metadata tables: Java's columns, PyIceberg's rows."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.table import StaticTable
from table_cases import data_file, equality_deletes, make_table, position_deletes

from frazil.catalog.protocol import Catalog
from frazil.table.handle import TableHandle

FILE_COLUMNS = (
    "content file_path file_format spec_id partition record_count file_size_in_bytes column_sizes "
    "value_counts null_value_counts nan_value_counts lower_bounds upper_bounds key_metadata "
    "split_offsets equality_ids sort_order_id first_row_id referenced_data_file content_offset "
    "content_size_in_bytes readable_metrics"
)
ENTRIES = "status snapshot_id sequence_number file_sequence_number data_file readable_metrics"
MANIFESTS = (
    "content path length partition_spec_id added_snapshot_id added_data_files_count "
    "existing_data_files_count deleted_data_files_count added_delete_files_count "
    "existing_delete_files_count deleted_delete_files_count partition_summaries"
)
COLUMNS = {
    "history": "made_current_at snapshot_id parent_id is_current_ancestor",
    "metadata_log_entries": (
        "timestamp file latest_snapshot_id latest_schema_id latest_sequence_number"
    ),
    "snapshots": "committed_at snapshot_id parent_id operation manifest_list summary",
    "refs": (
        "name type snapshot_id max_reference_age_in_ms min_snapshots_to_keep max_snapshot_age_in_ms"
    ),
    "manifests": MANIFESTS,
    "all_manifests": f"{MANIFESTS} reference_snapshot_id key_metadata",
    "entries": ENTRIES,
    "all_entries": ENTRIES,
    "partitions": (
        "partition spec_id record_count file_count total_data_file_size_in_bytes "
        "position_delete_record_count position_delete_file_count equality_delete_record_count "
        "equality_delete_file_count last_updated_at last_updated_snapshot_id"
    ),
    **dict.fromkeys(
        ("files", "data_files", "delete_files", "all_files", "all_data_files", "all_delete_files"),
        FILE_COLUMNS,
    ),
}


def busy_table(catalog: Catalog) -> TableHandle:
    """A table with some history."""
    table = make_table(catalog)
    table.files.append([data_file("a", ids=(1, 5)), data_file("b", None, rows=3)])
    table.files.append([data_file("c", "tue", ids=(-7, 9))])
    table.create_tag("t")
    table.files.row_delta(added_deletes=[position_deletes("p"), equality_deletes("e", "tue")])
    table.files.delete(removed=[data_file("b", None, rows=3)])
    return table


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_those_of_java_in_any_state(files_catalog: Catalog, name: str) -> None:
    """Names and order, of an empty table too."""
    empty = make_table(files_catalog, name="db.empty")
    for table in (empty, busy_table(files_catalog)):
        assert getattr(table.inspect, name)().columns == COLUMNS[name].split()


def comparable(rows: list[dict[str, Any]], names: list[str]) -> list[str]:
    """Rows without order."""
    return sorted(str([row[name] for name in names]) for row in rows)


SAME = {
    "history": ["snapshot_id", "parent_id", "is_current_ancestor"],
    "metadata_log_entries": ["file", "latest_snapshot_id", "latest_sequence_number"],
    "snapshots": ["snapshot_id", "parent_id", "operation", "manifest_list"],
    "refs": ["name", "type", "snapshot_id", "max_reference_age_in_ms"],
    "manifests": [name for name in MANIFESTS.split() if "count" in name or name == "path"],
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


def test_readable_metrics_show_bounds_as_values(files_catalog: Catalog) -> None:
    files = busy_table(files_catalog).inspect.data_files()
    bounds = {row["file_path"][-9:-8]: row["readable_metrics"]["id"] for row in files.to_dicts()}
    assert (bounds["c"]["lower_bound"], bounds["c"]["upper_bound"]) == (-7, 9)
    assert bounds["a"]["value_count"] == 10


def test_a_snapshot_can_be_asked_for(files_catalog: Catalog) -> None:
    table = busy_table(files_catalog)
    first = table.metadata.snapshots[0]
    assert len(table.inspect.files(first)) == 2
    assert len(table.inspect.all_data_files()["file_path"].unique()) == 3
