"""`spark.readStream` by the name of a table."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from frazil.catalog.identifiers import Identifier, shown
from frazil.errors import UnsupportedError, ValidationError
from frazil.spark.attached.dataframes.batch_reads import found_name
from frazil.spark.attached.dataframes.java_options import Given
from frazil.spark.attached.dataframes.lake_reads import ReadsLakes
from frazil.spark.plans.sparks_errors import sparks_errors
from frazil.spark.sql.context import NamedTable, NamedView
from frazil.spark.table import Table

_CHECKPOINT: Final = "checkpointlocation"


class LakeStreamReader(ReadsLakes):
    """Spark's reader of streams, which reads tables of lakes too."""

    def _frazil_at(self, place: str) -> DataFrame:
        raise UnsupportedError(
            f"a stream follows a table by its name in a lake, not by its folder {place}: "
            "register the table, and load it by name"
        )

    def _frazil_rows(self, parts: Identifier) -> DataFrame | None:
        self._frazil_names.refuse_in_transaction("a stream")
        with sparks_errors():
            named = found_name(self._frazil_names, self._frazil_session, parts)
            if named is None:
                return None
            if isinstance(named, NamedView):
                raise UnsupportedError(f"{shown(parts)} is a view: a stream follows a table")
            self._frazil_refuse_schema()
            return stream_of(named, self._frazil_given.copy())


def stream_of(named: NamedTable, given: Given) -> DataFrame:
    """Return the stream of a table that a reader's options ask for.

    Raises:
        ValidationError: the name says a version, or one of the table's metadata.
    """
    said = named.version
    if named.metadata_table is not None or said.snapshot_id or said.as_of:
        raise ValidationError("a stream follows a table or one of its branches")
    branch = given.take("branch") or said.ref
    checkpoint = given.take(_CHECKPOINT)
    given.take("path")
    assert isinstance(named.table, Table)
    return named.table.read_stream(
        checkpoint=checkpoint,
        from_snapshot_id=given.number("start-snapshot-id"),
        options=given.values,
        branch=branch,
    )
