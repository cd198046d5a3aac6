"""Partition specs and schemas that nothing of a table needs any more."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from frazil.format.changes import RemovePartitionSpecs, RemoveSchemas, Update
from frazil.format.manifests import EntryStatus, ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.planning.load import ManifestLoader, manifests_by_path
from frazil.storage.files import FileIO
from frazil.table.commit.operation import MetadataOperation

_MANIFESTS_AT_ONCE = 256


def remove_unused_specs_and_schemas(io: FileIO) -> MetadataOperation:
    """Remove partition specs and schemas that no snapshot uses; current ones stay.

    A snapshot uses its own schema, and the newest one of each dropped column that an equality
    delete of its files compares or that a spec of its files is made of: the type stands there. The
    newest schema stays too, so that its id is given to no other one and a gap in the ids tells of
    schemas that are gone: files may have been written with them.
    """

    def updates(base: TableMetadata) -> list[Update]:
        manifests = manifests_by_path(io, base.snapshots)
        specs = {base.default_spec_id, *(m.partition_spec_id for m in manifests.values())}
        schemas = {base.current_schema_id, max(base.schemas_by_id)}
        schemas.update(s.schema_id for s in base.snapshots if s.schema_id is not None)
        schemas |= _schemas_of_dropped(io, base, specs, schemas, manifests.values())
        unused_specs = tuple(sorted(base.specs_by_id.keys() - specs))
        unused_schemas = tuple(sorted(base.schemas_by_id.keys() - schemas))
        found: list[Update] = []
        if unused_specs:
            found.append(RemovePartitionSpecs(unused_specs))
        if unused_schemas:
            found.append(RemoveSchemas(unused_schemas))
        return found

    return MetadataOperation(updates)


def _schemas_of_dropped(
    io: FileIO,
    base: TableMetadata,
    specs: set[int],
    kept: set[int],
    manifests: Iterable[ManifestFile],
) -> set[int]:
    """The newest schema of each dropped column that files of these specs and manifests need."""
    unused = (s.field_ids for s in base.schemas if s.schema_id not in kept)
    dropped = frozenset().union(*unused) - base.schema.field_ids
    if not dropped:
        return set()
    needed = {
        source_id
        for spec in base.partition_specs
        if spec.spec_id in specs
        for field in spec.fields
        for source_id in field.source_ids
    }
    if not dropped <= needed:
        needed |= _compared_columns(io, base, manifests)
    newest_first = sorted(base.schemas, key=lambda schema: schema.schema_id, reverse=True)
    return {
        next(schema.schema_id for schema in newest_first if field_id in schema.field_ids)
        for field_id in dropped & needed
    }


def _compared_columns(
    io: FileIO, base: TableMetadata, manifests: Iterable[ManifestFile]
) -> set[int]:
    """The ids of the columns that live equality deletes compare."""
    loader = ManifestLoader.of(base, io)
    wanted = [m for m in manifests if m.content is ManifestContent.DELETES and m.has_live_files]
    found: set[int] = set()
    for start in range(0, len(wanted), _MANIFESTS_AT_ONCE):
        for frame in loader.entries(wanted[start : start + _MANIFESTS_AT_ONCE]):
            live = frame.filter(pl.col("status") != int(EntryStatus.DELETED))
            ids = live["equality_ids"].drop_nulls().explode().drop_nulls().unique()
            found.update(ids.to_list())
    return found
