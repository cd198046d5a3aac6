"""`spark.readStream` by the name of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.identifiers import Identifier, shown
from frazil.errors import ConfigurationError, UnsupportedError, ValidationError
from frazil.spark.attached.dataframes.batch_reads import found_name, is_folder, is_iceberg
from frazil.spark.attached.dataframes.java_options import Given
from frazil.spark.attached.names import SessionNames
from frazil.spark.attached.sparks_errors import sparks_errors
from frazil.spark.sql.context import NamedTable, NamedView
from frazil.spark.table import Table

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamReader
else:
    DataStreamReader = object

_CHECKPOINT: Final = "checkpointlocation"


class LakeStreamReader(DataStreamReader):
    """Spark's reader of streams, which reads tables of lakes too."""

    def begin(self, names: SessionNames, spark: SparkSession) -> None:
        """Begin to remember what is asked for."""
        self._frazil_names = names
        self._frazil_session = spark
        self._frazil_format: str | None = None
        self._frazil_given = Given()
        self._frazil_has_schema = False

    def format(self, source: str) -> LakeStreamReader:
        """Set what is read; ``iceberg`` is a table of a lake."""
        self._frazil_format = source
        super().format(source)
        return self

    def schema(self, schema: Any) -> LakeStreamReader:
        """Set the columns; a table has its own."""
        self._frazil_has_schema = True
        super().schema(schema)
        return self

    def option(self, key: str, value: Any) -> LakeStreamReader:
        """Set an option."""
        self._frazil_given.note(key, value)
        super().option(key, value)
        return self

    def options(self, **options: Any) -> LakeStreamReader:
        """Set options."""
        for key, value in options.items():
            self._frazil_given.note(key, value)
        super().options(**options)
        return self

    def table(self, tableName: str) -> DataFrame:
        """Return the rows of a table as they come."""
        parts = self._frazil_names.parts_of(tableName)
        rows = None if parts is None else self._frazil_rows(parts)
        return super().table(tableName) if rows is None else rows

    def load(
        self,
        path: str | None = None,
        format: str | None = None,
        schema: Any = None,
        **options: Any,
    ) -> DataFrame:
        """Return the rows of what comes to a place, or to a table."""
        if not is_iceberg(format or self._frazil_format):
            return super().load(path, format, schema, **options)
        for key, value in options.items():
            self._frazil_given.note(key, value)
        self._frazil_has_schema = self._frazil_has_schema or schema is not None
        place = path if path is not None else self._frazil_given.values.get("path")
        if isinstance(place, str) and is_folder(place):
            raise UnsupportedError(
                f"a stream follows a table by its name in a lake, not by its folder {place}: "
                "register the table, and load it by name"
            )
        parts = self._frazil_names.parts_of(place)
        rows = None if parts is None else self._frazil_rows(parts)
        return super().load(path, format, schema, **options) if rows is None else rows

    def _frazil_rows(self, parts: Identifier) -> DataFrame | None:
        with sparks_errors():
            named = found_name(self._frazil_names, self._frazil_session, parts)
            if named is None:
                return None
            if isinstance(named, NamedView):
                raise UnsupportedError(f"{shown(parts)} is a view: a stream follows a table")
            if self._frazil_has_schema:
                raise UnsupportedError(
                    "a table has its own columns: leave schema(…) out, and choose with select(…)"
                )
            return _stream(named, self._frazil_given.copy())


def _stream(named: NamedTable, given: Given) -> DataFrame:
    said = named.version
    if named.metadata_table is not None or said.snapshot_id or said.as_of:
        raise ValidationError("a stream follows a table or one of its branches")
    branch = given.take("branch") or said.ref
    checkpoint = given.take(_CHECKPOINT)
    given.take("path")
    if checkpoint is None:
        raise ConfigurationError(
            "a stream of a lake's table keeps in its checkpoint which files each batch holds: give "
            "the reader the folder too that the writer gets: "
            '.option("checkpointLocation", folder)'
        )
    assert isinstance(named.table, Table)
    return named.table.read_stream(
        checkpoint=checkpoint,
        from_snapshot_id=given.number("start-snapshot-id"),
        options=given.values,
        branch=branch,
    )
