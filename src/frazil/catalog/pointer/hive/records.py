"""Tables and views as a metastore keeps them."""

from __future__ import annotations

import time
from typing import Any, Final

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.pointer.hive.connection import Metastores, thrift_types
from frazil.catalog.pointer.hive.parameters import (
    METADATA_LOCATION,
    OF_TABLE,
    OF_VIEW,
    TABLE_OWNER,
    TABLE_TYPE,
    engine_enabled,
    table_parameters,
    view_parameters,
)
from frazil.catalog.pointer.hive.settings import TableForm
from frazil.catalog.pointer.type_text import type_text
from frazil.catalog.protocol import LoadedTable, LoadedView
from frazil.errors import InvalidMetadataError, NoSuchTableError, UnsupportedError
from frazil.format.schema import Schema
from frazil.format.types import IcebergType
from frazil.format.types.forms import form_of
from frazil.format.views import SqlRepresentation, ViewMetadata

_INT_MAX = 2**31 - 1
_VIRTUAL_VIEW = "VIRTUAL_VIEW"
_PLAIN: Final = (
    "org.apache.hadoop.mapred.FileInputFormat",
    "org.apache.hadoop.mapred.FileOutputFormat",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)
_BY_HIVE: Final = (
    "org.apache.iceberg.mr.hive.HiveIcebergInputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergOutputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergSerDe",
)


def find_record(metastores: Metastores, name: Identifier) -> Any | None:
    """Return the record of a name, of whatever kind; None if there is none.

    The call is one that Hive has from 2.3 on; `get_table` is gone in Hive 4.
    """
    if len(name) != 2:
        return None
    asked = thrift_types().GetTableRequest(dbName=name[0], tblName=name[1])
    found = metastores.find(lambda client: client.get_table_req(asked))
    return None if found is None else found.table


def identity_of(record: Any) -> tuple[Any, ...]:
    """Return what a record keeps through commits and renames, and another of its name has not."""
    return record.createTime, (record.parameters or {}).get("uuid")


def is_table(record: Any) -> bool:
    """Whether a record is of an Iceberg table."""
    return kind_of(record) == OF_TABLE and record.tableType != _VIRTUAL_VIEW


def is_view(record: Any) -> bool:
    """Whether a record is of a view of the view specification."""
    return kind_of(record) == OF_VIEW and record.tableType == _VIRTUAL_VIEW


def kind_of(record: Any) -> str:
    """Return the ``table_type`` in capitals; empty where Hive alone knows the table."""
    return str((record.parameters or {}).get(TABLE_TYPE, "")).upper()


def pointer_of(record: Any, name: Identifier) -> str:
    """Return where the current metadata file of an Iceberg table lies."""
    if record.tableType == _VIRTUAL_VIEW:
        raise NoSuchTableError(f"{shown(name)} is a view in the metastore, not a table")
    if not is_table(record):
        kind = kind_of(record) or record.sd.inputFormat
        raise NoSuchTableError(f"{shown(name)} is no Iceberg table but one of {kind}")
    return _metadata_location(record, shown(name))


def view_pointer_of(record: Any, name: Identifier) -> str:
    """Return where the current metadata file of a view lies."""
    return _metadata_location(record, f"the view {shown(name)}")


def require_external(record: Any, name: Identifier) -> None:
    """Check that the metastore will not move the files of a table when it gets another name.

    Otherwise metadata would name files that are not there any more.
    """
    if str((record.parameters or {}).get("EXTERNAL", "")).upper() != "TRUE":
        raise UnsupportedError(
            f"{shown(name)} is managed by Hive, which would move its files with its name: drop it "
            f"and register its metadata file as another table"
        )


def new_record(table: LoadedTable, form: TableForm) -> Any:
    """Return the record of a new table."""
    metadata = table.metadata
    return _record(
        table.identifier,
        metadata.properties.get(TABLE_OWNER, form.owner),
        sd=_descriptor(metadata.schema, metadata.location, form, _formats(table, form)),
        parameters=table_parameters(metadata, table.metadata_location, form=form),
        tableType="EXTERNAL_TABLE",
    )


def new_view_record(view: LoadedView, form: TableForm) -> Any:
    """Return the record of a new view."""
    metadata, text = view.metadata, _text_of(view.metadata)
    return _record(
        view.identifier,
        metadata.properties.get(TABLE_OWNER, form.owner),
        sd=_descriptor(metadata.schema, metadata.location, form, _PLAIN),
        parameters=view_parameters(metadata, view.metadata_location, form=form),
        viewOriginalText=text,
        viewExpandedText=text,
        tableType=_VIRTUAL_VIEW,
    )


def set_view(record: Any, base: LoadedView, view: LoadedView, form: TableForm) -> None:
    """Make a record one of the view after a commit; what is not Iceberg's stays."""
    metadata = view.metadata
    record.sd = _descriptor(metadata.schema, metadata.location, form, _PLAIN)
    record.viewOriginalText = record.viewExpandedText = _text_of(metadata)
    record.parameters = view_parameters(
        metadata,
        view.metadata_location,
        form=form,
        base=base.metadata,
        base_location=base.metadata_location,
        found=record.parameters,
    )


def set_table(record: Any, base: LoadedTable, table: LoadedTable, form: TableForm) -> None:
    """Make a record one of the table after a commit; what is not Iceberg's stays."""
    metadata = table.metadata
    record.sd = _descriptor(metadata.schema, metadata.location, form, _formats(table, form))
    record.parameters = table_parameters(
        metadata,
        table.metadata_location,
        form=form,
        base=base.metadata,
        base_location=base.metadata_location,
        found=record.parameters,
    )


def _record(identifier: Identifier, owner: str, **more: Any) -> Any:
    now = int(time.time())
    return thrift_types().Table(
        dbName=identifier[0],
        tableName=identifier[1],
        owner=owner,
        createTime=now,
        lastAccessTime=now,
        retention=_INT_MAX,
        partitionKeys=[],
        **more,
    )


def _metadata_location(record: Any, what: str) -> str:
    location = record.parameters.get(METADATA_LOCATION)
    if not location:
        raise InvalidMetadataError(
            f"the metastore's record of {what} names no metadata file", field=METADATA_LOCATION
        )
    return str(location)


def _text_of(metadata: ViewMetadata) -> str | None:
    """Return the SQL that Hive is shown: its own, else the first that there is."""
    version = metadata.current_version
    own = version.sql_for("hive")
    texts = (each.sql for each in version.representations if isinstance(each, SqlRepresentation))
    return next(texts, None) if own is None else own


def _formats(table: LoadedTable, form: TableForm) -> tuple[str, str, str]:
    return _BY_HIVE if engine_enabled(table.metadata.properties, form) else _PLAIN


def _descriptor(
    schema: Schema, location: str, form: TableForm, formats: tuple[str, str, str]
) -> Any:
    types = thrift_types()
    return types.StorageDescriptor(
        cols=[
            types.FieldSchema(
                each.name, hive_type(each.field_type, form.hive2_compatible), each.doc
            )
            for each in schema.fields
        ],
        location=location,
        inputFormat=formats[0],
        outputFormat=formats[1],
        serdeInfo=types.SerDeInfo(serializationLib=formats[2], parameters={}),
    )


# -- columns ---------------------------------------------------------------------------------------


def hive_type(value_type: IcebergType, hive2_compatible: bool) -> str:
    """Return the text of a type.

    `hive2_compatible` is without ``timestamp with local time zone``, which Hive 2 does not know.

    >>> hive_type(ListType(1, LongType()), False)
    'array<bigint>'
    """

    def name_of(primitive: IcebergType) -> str:
        form = form_of(primitive)
        return "timestamp" if hive2_compatible and form.zoned else form.hive

    return type_text(value_type, name_of)
