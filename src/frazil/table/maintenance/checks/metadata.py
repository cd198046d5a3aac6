"""What a table's metadata says that others cannot read, or that is not the table's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import polars as pl

from frazil.catalog.identifiers import shown
from frazil.catalog.protocol import Catalog, LoadedTable
from frazil.errors import UnsupportedError, ValidationError
from frazil.format.changes import value_checks
from frazil.format.manifests import ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import (
    DATA_PATH,
    FOLDER_STORAGE_PATH,
    METADATA_PATH,
    OBJECT_STORAGE_PATH,
)
from frazil.storage.paths import normalize_location, parent_of
from frazil.table.maintenance.checks.files import problem

_PATHS: Final = (DATA_PATH, FOLDER_STORAGE_PATH, METADATA_PATH, OBJECT_STORAGE_PATH)
VALUE, ELSEWHERE, NAME = "value", "elsewhere", "name"
ANSWERS: Final = {
    VALUE: "nothing mends it where it is: expire the snapshot if it is one's that is not current, "
    "or make another table of the rows",
    ELSEWHERE: "expire the snapshots that name it by a server, which keeps the file",
    NAME: "rename the table, or drop the namespace",
}
"""What can be done about each of these problems, none of which a repair mends."""


def metadata_problems(
    catalog: Catalog, table: LoadedTable, manifests: Iterable[ManifestFile]
) -> Sequence[pl.DataFrame]:
    """Return what others cannot load of a table, what is not its own, and a name that is taken.

    Args:
        catalog: that the table is in.
        table: as it is.
        manifests: of all its snapshots.
    """
    metadata, path = table.metadata, table.metadata_location
    values = (
        problem(path, "metadata", VALUE, reason=f"{reason}; Java and PyIceberg cannot load it")
        for reason in _refused_values(metadata)
    )
    folders = _folders(table)
    foreign = (
        problem(
            each.manifest_path,
            "manifest",
            ELSEWHERE,
            reason="it lies where the table has no other file, so it may be another table's",
        )
        for each in manifests
        if not any(
            _path_without_scheme(each.manifest_path).startswith(folder) for folder in folders
        )
    )
    return [*values, *foreign, *_names(catalog, table)]


def _names(catalog: Catalog, table: LoadedTable) -> Iterator[pl.DataFrame]:
    name = table.identifier
    # Where namespaces have one level, none has such a name.
    with contextlib.suppress(UnsupportedError, ValidationError):
        if len(name) > 1 and catalog.namespace_exists(name):
            reason = f"a namespace is called {shown(name)} too, and its folder is the table's"
            yield problem(table.metadata_location, "metadata", NAME, reason=reason)


def _refused_values(metadata: TableMetadata) -> Iterator[str]:
    """What is not of the specification's types, a line each."""
    uuid = metadata.table_uuid
    none: frozenset[int] = frozenset()
    checks: list[Callable[[], None]] = []
    if uuid is not None:
        checks.append(partial(value_checks.check_uuid, uuid, "the table's uuid"))
    version = metadata.format_version
    checks += [
        partial(value_checks.check_snapshot, each, none, format_version=version)
        for each in metadata.snapshots
    ]
    checks += [partial(value_checks.check_schema, each) for each in metadata.schemas]
    checks += [partial(value_checks.check_spec, each) for each in metadata.partition_specs]
    checks += [partial(value_checks.check_sort_order, each) for each in metadata.sort_orders]
    checks += [partial(value_checks.check_ref, *each) for each in metadata.refs.items()]
    checks += [partial(value_checks.check_statistics, each, none) for each in metadata.statistics]
    checks += [
        partial(value_checks.check_statistics, each, none) for each in metadata.partition_statistics
    ]
    for check in checks:
        try:
            check()
        except ValidationError as error:
            yield str(error)


def _folders(table: LoadedTable) -> tuple[str, ...]:
    """Folders where the table has files or had them, each with a slash at its end."""
    metadata = table.metadata
    named = (metadata.properties.get(each.name) for each in _PATHS)
    lists = (each.manifest_list for each in metadata.snapshots if each.manifest_list)
    files = (table.metadata_location, *lists, *(e.metadata_file for e in metadata.metadata_log))
    folders = (metadata.location, *filter(None, named), *{parent_of(each) for each in files})
    return tuple(f"{_path_without_scheme(each).rstrip('/')}/" for each in dict.fromkeys(folders))


def _path_without_scheme(path: str) -> str:
    """A path without its scheme, of which a store may have several."""
    normal = normalize_location(path)
    return (normal.partition(":")[2] or normal).lstrip("/")
