"""Known properties are checked when they are set; what others set fails only where it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from table_cases import CATALOGS, data_file, make_table, open_catalog

from frazil.catalog.protocol import Catalog
from frazil.errors import ConfigurationError, ValidationError
from frazil.format.changes import SetProperties
from frazil.format.properties.table import COLUMN_PROPERTIES, PROPERTIES
from frazil.table.handle import TableHandle
from rival_commits import before_the_commit

# One wrong value of each kind, as somebody may write it.
WRONG = {
    "write.target-file-size-bytes": "10MB",
    "commit.retry.num-retries": "²",
    "history.expire.max-ref-age-ms": str(2**63),
    "write.parquet.page-row-limit": "0",
    "gc.enabled": "no",
    "write.distribution-mode": "sorted",
    "write.parquet.compression-codec": "lzma",
    "write.metadata.metrics.default": "truncate(0)",
    "write.metadata.metrics.column.day": "most",
    "write.parquet.bloom-filter-fpp.column.day": "1.5",
    "write.parquet.bloom-filter-enabled.column.day": "1",
    "schema.name-mapping.default": "{",
}
RIGHT = {
    "write.target-file-size-bytes": "1",
    "write.distribution-mode": "NONE",
    "write.parquet.compression-codec": "GZIP",
    "write.parquet.compression-level": "null",
    "write.metadata.metrics.column.day": "Truncate(3)",
    "history.expire.max-ref-age-ms": str(2**63 - 1),
    "gc.enabled": "FALSE",
    "owner": "10MB",
    "write.someone-elses": "",
}


def test_every_wrong_value_is_listed_at_once(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    before = table.metadata_location
    with pytest.raises(ConfigurationError) as refused:
        table.set_properties({**RIGHT, **WRONG})
    said = str(refused.value)
    for name, value in WRONG.items():
        assert f"{name} is {value!r}" in said
    assert (said.count("must be"), "owner" in said) == (len(WRONG), False)
    numbers: Any = {"owner": 3}
    with pytest.raises(ValidationError, match="strings"):
        make_table(files_catalog, name="db.u", properties=numbers)
    assert table.refresh().metadata_location == before


def test_right_values_and_unknown_names_are_stored_as_they_are(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.set_properties(RIGHT)
    assert RIGHT.items() <= table.refresh().properties.items()


def test_a_level_must_be_one_of_the_codec_that_the_table_has(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.set_properties({"write.parquet.compression-level": "15"})
    with pytest.raises(ConfigurationError, match="gzip has the levels 0 to 9"):
        table.set_properties({"write.parquet.compression-codec": "gzip"})
    table.set_properties(
        {"write.parquet.compression-codec": "gzip", "write.parquet.compression-level": "9"}
    )


def set_by_another_engine(table: TableHandle, **properties: str) -> TableHandle:
    """Properties that were never checked."""
    changes = {name.replace("__", "-").replace("_", "."): v for name, v in properties.items()}
    table.catalog.commit_table(table.identifier, (), [SetProperties(changes)])
    return table.refresh()


@pytest.mark.parametrize("kind", CATALOGS)
def test_every_wrong_value_of_another_engine_can_be_mended(kind: str, tmp_path: Path) -> None:
    table = make_table(open_catalog(kind, tmp_path), files=[data_file("a")])
    wrong = {name: "wrong" for name in PROPERTIES if not name.endswith("path")}
    wrong["write.metadata.compression-codec"] = "none"
    wrong["write.metadata.previous-versions-max"] = "1"
    wrong |= {each.prefix + "day": "wrong" for each in COLUMN_PROPERTIES}
    table.catalog.commit_table(table.identifier, (), [SetProperties(wrong)])
    table.refresh()
    assert len(table.inspect.files()) == 1
    assert table.snapshot(table.metadata.current_snapshot_id) is not None
    table.remove_properties(*wrong)
    table.files.append([data_file("b")])


def test_what_needs_a_wrong_value_fails_with_its_name(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[data_file("a")])
    set_by_another_engine(table, gc_enabled="no", commit_manifest_target__size__bytes="8MB")
    with pytest.raises(ConfigurationError, match=r"gc\.enabled is 'no'"):
        table.maintenance.expire_snapshots()
    with pytest.raises(ConfigurationError, match="target-size-bytes is '8MB'"):
        table.files.append([data_file("b")])
    table.files.fast_append([data_file("b")])


def test_a_lost_race_with_a_wrong_retry_property_leaves_no_file(
    files_catalog: Catalog, tmp_path: Path
) -> None:
    table = make_table(files_catalog)
    set_by_another_engine(table, commit_retry_num__retries="often")
    rival = TableHandle(files_catalog, files_catalog.load_table(table.identifier))
    before_the_commit(table, lambda: rival.set_properties({"owner": "rival"}))
    with pytest.raises(ConfigurationError, match=r"commit\.retry\.num-retries is 'often'"):
        table.files.append([data_file("a")])
    assert table.refresh().properties["owner"] == "rival"
    assert list(tmp_path.rglob("*.avro")) == []
