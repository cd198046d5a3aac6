"""What there is, as drivers of JDBC ask for it: catalogs, schemas, tables and columns.

Spark's own lists know of its own catalog alone. A list is a statement that only our parser reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import types as S

from frazil.catalog.identifiers import Identifier
from frazil.catalog.protocol import Capability, Catalog, LoadedTable, LoadedView
from frazil.errors import FrazilError
from frazil.spark.catalog.place import SessionPlace
from frazil.spark.plans.machine import elements
from frazil.spark.session.facts import type_support
from frazil.spark.sql.context import SPARK_CATALOG
from frazil.spark.types import schema_to_spark

LIST: Final = "FRAZIL LIST "
"""How a text begins that only our parser reads: what is asked for follows, as JSON."""

_NULLABLE: Final = ("NO", "YES")
_RADIX: Final = 10
_TABLE, _VIEW = "TABLE", "VIEW"

_CATALOG_COLUMNS: Final = "TABLE_CAT string"
_SCHEMA_COLUMNS: Final = "TABLE_SCHEM string, TABLE_CATALOG string"
_TABLE_COLUMNS: Final = (
    "TABLE_CAT string, TABLE_SCHEM string, TABLE_NAME string, TABLE_TYPE string, REMARKS string, "
    "TYPE_CAT string, TYPE_SCHEM string, TYPE_NAME string, SELF_REFERENCING_COL_NAME string, "
    "REF_GENERATION string"
)
_COLUMN_COLUMNS: Final = (
    "TABLE_CAT string, TABLE_SCHEM string, TABLE_NAME string, COLUMN_NAME string, DATA_TYPE int, "
    "TYPE_NAME string, COLUMN_SIZE int, BUFFER_LENGTH tinyint, DECIMAL_DIGITS int, "
    "NUM_PREC_RADIX int, NULLABLE int, REMARKS string, COLUMN_DEF string, SQL_DATA_TYPE int, "
    "SQL_DATETIME_SUB int, CHAR_OCTET_LENGTH int, ORDINAL_POSITION int, IS_NULLABLE string, "
    "SCOPE_CATALOG string, SCOPE_SCHEMA string, SCOPE_TABLE string, SOURCE_DATA_TYPE smallint, "
    "IS_AUTO_INCREMENT string"
)
"""As `java.sql.DatabaseMetaData` says."""


@dataclass(frozen=True, slots=True)
class _SqlType:
    """What JDBC says of a type.

    Attributes:
        code: of `java.sql.Types`.
        size: in bytes; None where values have none of their own.
        digits: after the point.
    """

    code: int
    size: int | None = None
    digits: int | None = None
    is_number: bool = False


_TYPES: Final[Mapping[type[S.DataType], _SqlType]] = {
    S.BooleanType: _SqlType(16, 1),
    S.ByteType: _SqlType(-6, 1, 0, is_number=True),
    S.ShortType: _SqlType(5, 2, 0, is_number=True),
    S.IntegerType: _SqlType(4, 4, 0, is_number=True),
    S.LongType: _SqlType(-5, 8, 0, is_number=True),
    S.FloatType: _SqlType(6, 4, 7, is_number=True),
    S.DoubleType: _SqlType(8, 8, 15, is_number=True),
    S.StringType: _SqlType(12),
    S.BinaryType: _SqlType(-2),
    S.DateType: _SqlType(91, 4),
    S.TimestampType: _SqlType(93, 8, 6),
    S.TimestampNTZType: _SqlType(93, 8, 6),
    S.ArrayType: _SqlType(2003),
    S.MapType: _SqlType(2000),
    S.StructType: _SqlType(2002),
}
_OTHER: Final = _SqlType(1111)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A table or a view.

    Attributes:
        catalog, schema, name: what it is called.
        kind: ``TABLE`` or ``VIEW``.
        columns: returns them.
    """

    catalog: str
    schema: str
    name: str
    kind: str
    columns: Callable[[], S.StructType]


def list_rows(place: SessionPlace, text: str) -> DataFrame:
    """Return what a text asks for."""
    asked = json.loads(text[len(LIST) :])
    kind, wanted = asked["kind"], _Wanted(place, asked)
    if kind == "catalogs":
        names = sorted({SPARK_CATALOG, *place.names_now().lakes})
        return _frame(place, _CATALOG_COLUMNS, [(name,) for name in names])
    if kind == "schemas":
        rows = sorted((schema, catalog) for catalog, schema in wanted.schemas())
        return _frame(place, _SCHEMA_COLUMNS, sorted(rows, key=lambda row: row[::-1]))
    tables = wanted.tables()
    if kind == "tables":
        ordered = sorted(tables, key=lambda each: (each.kind, *_whole_name(each)))
        return _frame(
            place,
            _TABLE_COLUMNS,
            [(*_whole_name(each), each.kind, "", None, None, None, None, None) for each in ordered],
        )
    matches = _pattern(asked["column"])
    found = [
        _column_row(each, place_in_table, field)
        for each in sorted(tables, key=_whole_name)
        for place_in_table, field in enumerate(_columns(each), 1)
        if matches(field.name)
    ]
    return _frame(place, _COLUMN_COLUMNS, found)


class _Wanted:
    """What there is of which a driver asks."""

    def __init__(self, place: SessionPlace, asked: Mapping[str, Any]) -> None:
        self._place = place
        self._catalog = (asked.get("catalog") or "").lower()
        self._schema = _pattern(asked.get("schema"))
        self._table = _pattern(asked.get("table"))
        self._types: Collection[str] = {each.upper() for each in asked.get("types") or ()}

    def schemas(self) -> Iterator[tuple[str, str]]:
        """Yield catalogs and their schemas."""
        for name, catalog in self._lakes():
            for levels in _namespaces(catalog, ()):
                if self._schema(".".join(levels)):
                    yield name, ".".join(levels)
        for name in self._of_spark():
            yield SPARK_CATALOG, name

    def tables(self) -> list[_Listed]:
        """Return tables and views."""
        return [
            each
            for each in (*self._of_lakes(), *self._in_spark())
            if self._table(each.name) and (not self._types or each.kind in self._types)
        ]

    def _lakes(self) -> Iterator[tuple[str, Catalog]]:
        for name, lake in self._place.names_now().lakes.items():
            if self._catalog in ("", name.lower()):
                yield name, lake.catalog

    def _of_lakes(self) -> Iterator[_Listed]:
        for name, catalog in self._lakes():
            for levels in _namespaces(catalog, ()):
                schema = ".".join(levels)
                if not self._schema(schema):
                    continue
                for table in catalog.list_tables(levels):
                    yield _Listed(
                        name,
                        schema,
                        table[-1],
                        _TABLE,
                        self._lake_columns(catalog.load_table, table),
                    )
                if catalog.can(Capability.VIEWS):
                    for view in catalog.list_views(levels):
                        yield _Listed(
                            name,
                            schema,
                            view[-1],
                            _VIEW,
                            self._lake_columns(catalog.load_view, view),
                        )

    def _lake_columns(
        self, load: Callable[[Identifier], LoadedTable | LoadedView], name: Identifier
    ) -> Callable[[], S.StructType]:
        support = type_support(self._place.spark)
        return lambda: schema_to_spark(load(name).metadata.schema, support=support)

    def _of_spark(self) -> Iterator[str]:
        if self._catalog not in ("", SPARK_CATALOG):
            return
        for name in elements(self._place.session.sessionState().catalog().listDatabases()):
            if self._schema(str(name)):
                yield str(name)

    def _in_spark(self) -> Iterator[_Listed]:
        """Tables and views of Spark's own catalog, and temporary views, which have no schema."""
        if self._catalog not in ("", SPARK_CATALOG):
            return
        catalog = self._place.session.sessionState().catalog()
        for schema in self._of_spark():
            for table in elements(catalog.listTables(schema, "*", False)):
                kept = catalog.getTableMetadata(table)
                kind = _VIEW if str(kept.tableType().name()) == _VIEW else _TABLE
                yield _Listed(SPARK_CATALOG, schema, str(table.table()), kind, _columns_of(kept))
        for view in elements(catalog.listLocalTempViews("*")) if self._schema("") else ():
            kept = catalog.getTempViewOrPermanentTableMetadata(view)
            yield _Listed("", "", str(view.table()), _VIEW, _columns_of(kept))


def _columns_of(kept: Any) -> Callable[[], S.StructType]:
    return lambda: S.StructType.fromJson(json.loads(kept.schema().json()))


def _namespaces(catalog: Catalog, parent: Identifier) -> Iterator[Identifier]:
    for levels in catalog.list_namespaces(parent):
        yield levels
        yield from _namespaces(catalog, levels)


def _whole_name(each: _Listed) -> tuple[str, str, str]:
    return each.catalog, each.schema, each.name


def _columns(each: _Listed) -> Sequence[S.StructField]:
    """The columns of a table; none of one that is gone meanwhile, or cannot be read."""
    try:
        return each.columns().fields
    except FrazilError:
        return ()


def _column_row(each: _Listed, place: int, field: S.StructField) -> tuple[Any, ...]:
    kind = field.dataType
    said = _TYPES.get(type(kind), _OTHER)
    if isinstance(kind, S.DecimalType):
        said = _SqlType(3, 8 if kind.precision <= 18 else 16, kind.scale, is_number=True)
    comment = (field.metadata or {}).get("comment", "")
    return (
        *_whole_name(each), field.name, said.code, kind.simpleString().upper(), said.size, None,
        said.digits, _RADIX if said.is_number else None, int(field.nullable), comment, None, None,
        None, None, place, _NULLABLE[field.nullable], None, None, None, None, "NO",
    )  # fmt: skip


def _pattern(text: str | None) -> Callable[[str], bool]:
    """What a name has to be: ``%`` stands for letters, ``_`` for one, as they are after ``\\``."""
    if not text or text == "*":
        return lambda _: True
    pieces: list[str] = []
    letters = iter(text)
    for letter in letters:
        if letter == "\\":
            pieces.append(re.escape(next(letters, letter)))
        else:
            pieces.append({"%": ".*", "_": "."}.get(letter, re.escape(letter)))
    wanted = re.compile("".join(pieces), re.IGNORECASE | re.DOTALL)
    return lambda name: wanted.fullmatch(name) is not None


def _frame(place: SessionPlace, columns: str, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    return place.spark.createDataFrame(list(rows), columns)
