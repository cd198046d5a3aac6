"""`df.write`: `saveAsTable`, `insertInto` and `save`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from frazil.catalog.identifiers import Identifier, shown
from frazil.errors import TableAlreadyExistsError, UnsupportedError, ValidationError
from frazil.format.predicates.sql.quoting import quote_name
from frazil.spark.attached.dataframes.java_options import Given
from frazil.spark.attached.dataframes.lake_reads import RemembersOptions, is_folder, is_iceberg
from frazil.spark.attached.dataframes.table_writes import TableWrite
from frazil.spark.attached.names import SessionNames
from frazil.spark.plans.sparks_errors import sparks_errors
from frazil.spark.sql.statements.tables import format_properties

if TYPE_CHECKING:
    from pyspark.sql.readwriter import DataFrameWriter
else:
    DataFrameWriter = object

_MODES = ("append", "overwrite", "ignore", "error", "errorifexists", "default")


class LakeWriter(RemembersOptions, DataFrameWriter):
    """Spark's writer, which writes tables of lakes too."""

    def begin(self, names: SessionNames, rows: DataFrame) -> None:
        """Begin to remember what is asked for."""
        self._frazil_names = names
        self._frazil_rows = rows
        self._frazil_format = None
        self._frazil_mode = "errorifexists"
        self._frazil_given = Given()
        self._frazil_terms: list[str] = []
        self._frazil_refused: str | None = None

    def mode(self, saveMode: str | None) -> LakeWriter:
        """Set what to do where something is there already."""
        if saveMode is not None:
            self._frazil_mode = saveMode.lower()
        super().mode(saveMode)
        return self

    def partitionBy(self, *cols: Any) -> LakeWriter:
        """Set the columns that a new table is partitioned by."""
        self._frazil_terms += [quote_name([name]) for name in _names(cols)]
        super().partitionBy(*cols)
        return self

    def bucketBy(self, numBuckets: int, col: Any, *cols: str) -> LakeWriter:
        """Set a bucket that a new table is partitioned by."""
        names = _names((col, *cols) if isinstance(col, str) else col)
        self._frazil_terms += [f"bucket({numBuckets}, {quote_name([name])})" for name in names]
        if len(names) > 1:
            self._frazil_refused = "bucketBy of several columns"
        super().bucketBy(numBuckets, col, *cols)
        return self

    def sortBy(self, col: Any, *cols: str) -> LakeWriter:
        """Set the order within buckets; tables of lakes have ALTER TABLE … WRITE ORDERED BY."""
        self._frazil_refused = "sortBy"
        super().sortBy(col, *cols)
        return self

    def clusterBy(self, *cols: Any) -> LakeWriter:
        """Set the columns that Spark's own tables are clustered by."""
        self._frazil_refused = "clusterBy"
        super().clusterBy(*cols)
        return self

    def save(
        self,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        """Write to a place, or to a table."""
        if not is_iceberg(format or self._frazil_format):
            super().save(path, format, mode, partitionBy, **options)
            return
        given = self._frazil_given.values
        place = path if path is not None else options.get("path", given.get("path"))
        parts = self._frazil_names.parts_of(place)
        if parts is None:
            if isinstance(place, str) and is_folder(place):
                raise UnsupportedError(
                    f"a table is written by its name in a lake, not by its folder {place}"
                )
            super().save(path, format, mode, partitionBy, **options)
            return
        with sparks_errors():
            write = self._frazil_write(parts, mode, partitionBy, options)
            match self._frazil_mode:
                case "append":
                    write.append()
                case "overwrite":
                    write.overwrite()
                case _:
                    self._frazil_create(write)

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        """Insert the rows into a table, columns by their places."""
        parts = self._frazil_names.parts_of(tableName)
        if parts is None:
            super().insertInto(tableName, overwrite)
            return
        if overwrite is not None:
            self._frazil_mode = "overwrite" if overwrite else "append"
        with sparks_errors():
            write = self._frazil_write(parts, None, None, {})
            if write.partition_by:
                raise ValidationError(
                    "insertInto() goes into the partitions that the table has: leave partitionBy() "
                    "out"
                )
            write.insert(overwrites=self._frazil_mode == "overwrite")

    def saveAsTable(
        self,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        """Make a table of the rows, or write them to one."""
        parts = self._frazil_names.parts_of(name)
        if parts is None:
            super().saveAsTable(name, format, mode, partitionBy, **options)
            return
        with sparks_errors():
            properties = format_properties(format or self._frazil_format)
            write = self._frazil_write(parts, mode, partitionBy, options)
            write = replace(write, properties=properties)
            match self._frazil_mode:
                case "append":
                    self._frazil_append(write)
                case "overwrite":
                    write.create_or_replace()
                case _:
                    self._frazil_create(write)

    def _frazil_append(self, write: TableWrite) -> None:
        """Add to a table that is there, or to a branch that its name says, else make it."""
        if write.is_there():
            write.append()
        else:
            write.create()

    def _frazil_create(self, write: TableWrite) -> None:
        if write.exists():
            if self._frazil_mode == "ignore":
                return
            raise TableAlreadyExistsError(
                f"there is a table {shown(write.parts)}: choose a mode, append or overwrite"
            )
        write.create()

    def _frazil_write(
        self, parts: Identifier, mode: str | None, terms: Any, options: dict[str, Any]
    ) -> TableWrite:
        self._frazil_mode = self._frazil_mode if mode is None else mode.lower()
        if self._frazil_mode not in _MODES:
            raise ValidationError(
                f"the mode is {self._frazil_mode!r}: it must be one of {', '.join(_MODES)}"
            )
        if self._frazil_refused is not None:
            raise UnsupportedError(
                f"{self._frazil_refused} is not there for tables of a lake: set their order with "
                "ALTER TABLE … WRITE ORDERED BY, and partitions with partitionBy()"
            )
        given = self._frazil_given.copy()
        given.note_each(options)
        if terms is not None:
            self._frazil_terms = [quote_name([name]) for name in _names((terms,))]
        return TableWrite(
            names=self._frazil_names,
            parts=parts,
            rows=self._frazil_rows,
            given=given,
            partition_by=tuple(self._frazil_terms),
        )


def _names(cols: Sequence[Any]) -> list[str]:
    """The names that are given one by one, or as one list."""
    if len(cols) == 1 and isinstance(cols[0], list | tuple):
        return [str(name) for name in cols[0]]
    return [str(name) for name in cols]
