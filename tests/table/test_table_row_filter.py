"""What a predicate says of files whose manifest lacks a field of their partition."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from io import BytesIO
from typing import Any

import fastavro
import pytest
from table_cases import data_file, make_table, position_deletes

from frazil.catalog.protocol import Catalog
from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.table.handle import TableHandle
from frazil.table.manifests.entry_columns import read_entry_columns
from frazil.table.manifests.row_filter import RowFilter


def without_partition(table: TableHandle, manifest: ManifestFile) -> ManifestFile:
    """The manifest as a writer has it that leaves the partition's fields out."""
    reader = fastavro.reader(BytesIO(table.io.read(manifest.manifest_path)))
    schema = json.loads(reader.metadata["avro.schema"])
    rows: list[Any] = copy.deepcopy(list(reader))
    (file,) = (field["type"] for field in schema["fields"] if field["name"] == "data_file")
    (partition,) = (field["type"] for field in file["fields"] if field["name"] == "partition")
    partition["fields"] = []
    for row in rows:
        row["data_file"]["partition"] = {}
    out = BytesIO()
    kept = {k: v for k, v in reader.metadata.items() if not k.startswith("avro")}
    fastavro.writer(out, schema, rows, metadata=kept)
    path = f"{table.location}/metadata/without-{manifest.content.name}.avro"
    table.io.write(path, out.getvalue())
    return replace(manifest, manifest_path=path, manifest_length=len(out.getvalue()))


@pytest.mark.parametrize("content", list(ManifestContent))
@pytest.mark.parametrize("where", ["day = 'mon'", "day = 'mon' or day = 'wed'", "day is not null"])
def test_an_unknown_partition_is_not_taken_for_one_that_matches(
    files_catalog: Catalog, content: ManifestContent, where: str
) -> None:
    table = make_table(files_catalog)
    table.files.append([data_file("a", "tue")])
    table.files.row_delta(added_deletes=[position_deletes("p", "tue")])
    (manifest,) = (m for m in table.inspect.manifests_of() if m.content is content)
    manifest = without_partition(table, manifest)
    row_filter = RowFilter(where)
    values = row_filter.statistics(table.metadata)
    entries = read_entry_columns(table.io, table.metadata, manifest, values=values)
    assert row_filter.any_match(table.metadata, manifest, entries).to_list() == [True]
    assert row_filter.all_match(table.metadata, manifest, entries).to_list() == [False]
