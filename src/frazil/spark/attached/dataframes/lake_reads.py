"""What readers of tables and of streams share, and writers: they remember what is asked for."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final, Self

from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.identifiers import Identifier
from frazil.errors import UnsupportedError
from frazil.spark.attached.dataframes.java_options import Given
from frazil.spark.attached.names import SessionNames

FORMAT: Final = "iceberg"


class RemembersOptions:
    """A reader or writer of Spark that notes format and options; Spark's class comes after it."""

    _frazil_format: str | None
    _frazil_given: Given

    @property
    def _sparks(self) -> Any:
        """The reader or writer as Spark has it."""
        return super()

    def format(self, source: str) -> Self:
        """Set what is read or written; ``iceberg`` is a table of a lake."""
        self._frazil_format = source
        self._sparks.format(source)
        return self

    def option(self, key: str, value: Any) -> Self:
        """Set an option."""
        self._frazil_given.note(key, value)
        self._sparks.option(key, value)
        return self

    def options(self, **options: Any) -> Self:
        """Set options."""
        self._frazil_given.note_each(options)
        self._sparks.options(**options)
        return self


class ReadsLakes(RemembersOptions):
    """A reader of Spark's that reads tables of lakes too; Spark's class comes after this one."""

    def begin(self, names: SessionNames, spark: SparkSession) -> None:
        """Begin to remember what is asked for."""
        self._frazil_names = names
        self._frazil_session = spark
        self._frazil_format = None
        self._frazil_given = Given()
        self._frazil_has_schema = False

    def schema(self, schema: Any) -> Self:
        """Set the columns; a table has its own."""
        self._frazil_has_schema = True
        self._sparks.schema(schema)
        return self

    def table(self, tableName: str) -> DataFrame:
        """Return the rows of a table."""
        parts = self._frazil_names.parts_of(tableName)
        rows = None if parts is None else self._frazil_rows(parts)
        found: DataFrame = self._sparks.table(tableName) if rows is None else rows
        return found

    def load(
        self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
    ) -> DataFrame:
        """Return the rows of what lies at a place, or of a table."""
        rows: DataFrame | None = None
        if is_iceberg(format or self._frazil_format):
            self._frazil_given.note_each(options)
            self._frazil_has_schema = self._frazil_has_schema or schema is not None
            place = path if path is not None else self._frazil_given.values.get("path")
            if isinstance(place, str) and is_folder(place):
                return self._frazil_at(place)
            parts = self._frazil_names.parts_of(place)
            rows = None if parts is None else self._frazil_rows(parts)
        found: DataFrame = (
            self._sparks.load(path, format, schema, **options) if rows is None else rows
        )
        return found

    @abstractmethod
    def _frazil_rows(self, parts: Identifier) -> DataFrame | None:
        """The rows of a lake's table; None where the name is that of a temporary view."""

    @abstractmethod
    def _frazil_at(self, place: str) -> DataFrame:
        """The rows of a table by its folder."""

    def _frazil_refuse_schema(self) -> None:
        if self._frazil_has_schema:
            raise UnsupportedError(
                "a table has its own columns: leave schema(…) out, and choose with select(…)"
            )


def is_iceberg(source: str | None) -> bool:
    """Return whether a format is that of lakes' tables."""
    return source is not None and source.lower() == FORMAT


def is_folder(place: str) -> bool:
    """Return whether what is loaded is a place, not a name."""
    return "/" in place
