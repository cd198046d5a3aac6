"""Parameters of tables and views in a metastore, as Java's HMSTablePropertyHelper sets them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from frazil.catalog.pointer.hive.settings import TableForm
from frazil.format.metadata import TableMetadata
from frazil.format.properties.kinds import FLAG, Property
from frazil.format.properties.table import GC_ENABLED
from frazil.format.schema import Schema
from frazil.format.views import ViewMetadata

TABLE_TYPE: Final = "table_type"
METADATA_LOCATION: Final = "metadata_location"
PREVIOUS_METADATA_LOCATION: Final = "previous_metadata_location"
TABLE_OWNER: Final = "hive.metastore.table.owner"
DO_NOT_UPDATE_STATS: Final = "DO_NOT_UPDATE_STATS"
OF_TABLE: Final = "ICEBERG"
OF_VIEW: Final = "ICEBERG-VIEW"

_COLUMN_STATS_ACCURATE = "COLUMN_STATS_ACCURATE"
_STORAGE_HANDLER = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
_HIVE_NAMES: Final = {GC_ENABLED.name: "external.table.purge"}
_STATISTICS: Final = {
    "numFiles": "total-data-files",
    "numRows": "total-records",
    "totalSize": "total-files-size",
}
_LOG = logging.getLogger(__name__)


def engine_enabled(properties: Mapping[str, str], form: TableForm) -> bool:
    """Whether Hive reads the table: the table's own property, else the catalog's."""
    return Property("engine.hive.enabled", FLAG, form.engine_enabled).of_or_default(properties)


def lock_enabled(properties: Mapping[str, str], form: TableForm) -> bool:
    """Whether commits of the table lock it: the table's own property, else the catalog's."""
    return Property("engine.hive.lock-enabled", FLAG, form.lock_enabled).of_or_default(properties)


def table_parameters(
    metadata: TableMetadata,
    location: str,
    *,
    form: TableForm,
    base: TableMetadata | None = None,
    base_location: str | None = None,
    found: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the parameters that a table has after a commit.

    `base`: the table as it was; None for a new one. `found`: the parameters that the metastore has
    now; others than Iceberg's are kept.
    """
    parameters = dict(found or {"EXTERNAL": "TRUE"})
    _remove_obsolete(parameters, {} if base is None else base.properties, metadata.properties)
    for name, value in metadata.properties.items():
        if name.lower() != TABLE_OWNER:
            parameters[_HIVE_NAMES.get(name, name)] = value
    _set_pointers(parameters, OF_TABLE, location, base_location)
    if metadata.table_uuid is not None:
        parameters["uuid"] = metadata.table_uuid
    if engine_enabled(metadata.properties, form):
        parameters["storage_handler"] = _STORAGE_HANDLER
    else:
        parameters.pop("storage_handler", None)
    if not form.keep_statistics:
        parameters.pop(_COLUMN_STATS_ACCURATE, None)
        parameters[DO_NOT_UPDATE_STATS] = "true"
    _set_snapshot(parameters, metadata, form.longest_parameter)
    _set_schema(parameters, metadata.schema, form.longest_parameter)
    spec, order = metadata.spec, metadata.sort_order
    spec_json = spec.to_json() if spec.fields else None
    _set_json(parameters, "default-partition-spec", spec_json, form.longest_parameter)
    order_json = order.to_json() if order.fields else None
    _set_json(parameters, "default-sort-order", order_json, form.longest_parameter)
    return parameters


def view_parameters(
    metadata: ViewMetadata,
    location: str,
    *,
    form: TableForm,
    base: ViewMetadata | None = None,
    base_location: str | None = None,
    found: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the parameters that a view has after a commit; arguments are as of a table."""
    parameters = dict(found or {})
    _remove_obsolete(parameters, {} if base is None else base.properties, metadata.properties)
    own = metadata.properties.items()
    parameters |= {name: value for name, value in own if name.lower() != TABLE_OWNER}
    _set_pointers(parameters, OF_VIEW, location, base_location)
    parameters["uuid"] = metadata.view_uuid
    _set_schema(parameters, metadata.schema, form.longest_parameter)
    return parameters


def _remove_obsolete(
    parameters: dict[str, str], before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    for name in before.keys() - after.keys():
        parameters.pop(_HIVE_NAMES.get(name, name), None)


def _set_pointers(
    parameters: dict[str, str], kind: str, location: str, base_location: str | None
) -> None:
    parameters[TABLE_TYPE] = kind
    parameters[METADATA_LOCATION] = location
    if base_location:
        parameters[PREVIOUS_METADATA_LOCATION] = base_location


def _set_snapshot(parameters: dict[str, str], metadata: TableMetadata, longest: int) -> None:
    snapshot = metadata.current_snapshot
    summary = dict((snapshot.summary if snapshot is not None else None) or {})
    for name, total in _STATISTICS.items():
        if total in summary:
            parameters[name] = summary[total]
    summary.pop("operation", None)
    shown = snapshot if longest else None
    number = None if shown is None else str(shown.snapshot_id)
    time_ms = None if shown is None else str(shown.timestamp_ms)
    _set_text(parameters, "current-snapshot-id", number, longest)
    _set_text(parameters, "current-snapshot-timestamp-ms", time_ms, longest)
    _set_json(parameters, "current-snapshot-summary", summary if shown else None, longest)
    parameters["snapshot-count"] = str(len(metadata.snapshots))


def _set_schema(parameters: dict[str, str], schema: Schema, longest: int) -> None:
    _set_json(parameters, "current-schema", schema.to_json(), longest)


def _set_json(parameters: dict[str, str], name: str, value: Any, longest: int) -> None:
    text = None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    _set_text(parameters, name, text, longest)


def _set_text(parameters: dict[str, str], name: str, text: str | None, longest: int) -> None:
    """Set a parameter that is for readers of the metastore alone, if it is short enough."""
    parameters.pop(name, None)
    if text is None or not longest:
        return
    if len(text) > longest:
        _LOG.info("%s is left out: it has %d characters, more than %d", name, len(text), longest)
        return
    parameters[name] = text
