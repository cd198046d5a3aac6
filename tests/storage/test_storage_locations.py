"""File names and layouts, against PyIceberg's providers and the values of the rules."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table.locations import ObjectStoreLocationProvider

from frazil.errors import ConfigurationError
from frazil.format.metadata import TableMetadata
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField
from frazil.storage import locations
from frazil.storage.file_kinds import DATA_FILES, POSITION_DELETE_FILES

SCHEMA = Schema((NestedField(1, "id", LongType()),))
OBJECTS = {"write.object-storage.enabled": "true"}


def metadata(location: str = "s3://b/db/t", **properties: str) -> TableMetadata:
    return new_table_metadata(SCHEMA, location=location, properties=properties)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, "s3://b/db/t/data"),
        ({"write.data.path": "s3://d/x/"}, "s3://d/x"),
        ({"write.folder-storage.path": "s3://f"}, "s3://f"),
        ({"write.folder-storage.path": "s3://f", "write.data.path": "s3://d"}, "s3://d"),
        ({"write.object-storage.path": "s3://o"}, "s3://b/db/t/data"),
        ({**OBJECTS, "write.object-storage.path": "s3://o"}, "s3://o"),
    ],
)
def test_data_folders(properties: dict[str, str], expected: str) -> None:
    assert locations.data_location(metadata(**properties)) == expected


def test_plain_paths_become_uris() -> None:
    """As warehouses do: other engines take no plain path."""
    for key in ("write.data.path", "write.folder-storage.path"):
        assert locations.data_location(metadata(**{key: "/d//x/"})) == "file:///d/x"
    objects = metadata(**OBJECTS, **{"write.object-storage.path": "/o/../p"})
    assert locations.data_location(objects) == "file:///p"
    relative = metadata(**{"write.metadata.path": "m"})
    assert locations.metadata_location(relative) == f"file://{os.path.abspath('m')}"
    inside = metadata("file:///wh/t", **OBJECTS, **{"write.data.path": "/wh/t/d"})
    assert locations.data_file_path(inside, "f.parquet").startswith("file:///wh/t/d/")
    assert "/wh/t/f.parquet" not in locations.data_file_path(inside, "f.parquet")


def test_partition_folders_are_short_enough() -> None:
    usual = "name=" + "x" * 250
    assert locations.partition_folders(f"{usual}/b=1") == f"{usual}/b=1"
    long, other = "name=" + "%E6%97%A5" * 29, "name=" + "%E6%97%A5" * 30
    names = [locations.partition_folders(name) for name in (long, other)]
    assert len({*names}) == 2
    for name in names:
        assert len(name) <= 255
        assert name.startswith("name=%E6%97%A5")
        assert re.fullmatch(r"name=(%[0-9A-F]{2})*-[0-9a-f]{32}", name)


def test_metadata_folders() -> None:
    assert locations.metadata_location(metadata("file:///a b/")) == "file:///a b/metadata"
    moved = metadata(**{"write.metadata.path": "s3://m/"})
    assert locations.metadata_location(moved) == "s3://m"


def test_names() -> None:
    """Rules 304, 305."""
    table = metadata()
    assert locations.manifest_path(table, "c0ffee", 2) == "s3://b/db/t/metadata/c0ffee-m2.avro"
    assert (
        locations.manifest_list_path(table, 5, attempt=1, commit_id="c0ffee")
        == "s3://b/db/t/metadata/snap-5-1-c0ffee.avro"
    )
    assert re.fullmatch(
        r"s3://b/db/t/metadata/00007-[0-9a-f-]{36}\.metadata\.json",
        locations.new_metadata_file_path(table, version=7),
    )
    arguments = {"partition_id": 3, "task_id": 7, "operation_id": "op", "count": 1}
    assert DATA_FILES.file_name(**arguments) == "00003-7-op-00001.parquet"
    assert POSITION_DELETE_FILES.file_name(**arguments) == "00003-7-op-00001-deletes.parquet"
    assert locations.data_file_path(table, "f", partition_path="a=1") == "s3://b/db/t/data/a=1/f"


@given(name=st.text(st.characters(exclude_characters="/", codec="utf-8"), min_size=1))
@pytest.mark.parametrize("partitioned", ["true", "false"])
def test_object_layout_is_that_of_pyiceberg(name: str, partitioned: str) -> None:
    """Rule 306, inside of the table's location."""
    properties = {**OBJECTS, "write.object-storage.partitioned-paths": partitioned}
    theirs = ObjectStoreLocationProvider("s3://b/db/t", properties).new_data_location(name)
    assert locations.data_file_path(metadata(**properties), name) == theirs


def test_shared_data_paths_keep_tables_apart() -> None:
    """Rule 306: outside of the table's location the context is db/table."""
    table = metadata(**OBJECTS, **{"write.data.path": "s3://shared"})
    folders = locations.entropy_folders("a=1/f")
    path = locations.data_file_path(table, "f", partition_path="a=1")
    assert path == f"s3://shared/{folders}/db/t/a=1/f"
    folder = locations.new_data_folder(table, "op")
    assert folder == f"s3://shared/{locations.entropy_folders('op')}/db/t/op"


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("v3.metadata.json", 3),
        ("v3.gz.metadata.json", 3),
        ("v12.metadata.json.gz", 12),
        ("00041-2cd22b57.metadata.json", 41),
        ("00041-2cd22b57.gz.metadata.json", 41),
        ("vfinal.metadata.json", None),
        ("v4.1.metadata.json", None),
        ("00041.avro", None),
    ],
)
def test_versions_in_names(name: str, version: int | None) -> None:
    assert locations.metadata_version(f"s3://b/t/metadata/{name}") == version


def test_malformed_settings() -> None:
    with pytest.raises(ConfigurationError, match="'yes'"):
        locations.data_location(metadata(**{"write.object-storage.enabled": "yes"}))
    with pytest.raises(ConfigurationError, match="lz4"):
        locations.metadata_extension({"write.metadata.compression-codec": "lz4"})
