"""TableInspector: every metadata table, as Polars frames and as DataFrames of Spark."""

from __future__ import annotations

from datetime import tzinfo

from pyspark.sql import SparkSession

from frazil.format.metadata import TableMetadata
from frazil.spark.metadata_frames.frames import MetadataFrames
from frazil.storage.files import FileIO
from frazil.table.inspect.inspector import Inspector


class TableInspector(Inspector):
    """The metadata tables of one table.

    Its methods give Polars frames, read in this process without a Spark job; `dataframes` has the
    same methods for DataFrames of Spark, and `position_deletes` besides.
    """

    def __init__(
        self,
        spark: SparkSession,
        metadata: TableMetadata,
        metadata_location: str,
        io: FileIO,
        *,
        text_zone: str | tzinfo,
    ) -> None:
        super().__init__(metadata, metadata_location, io, text_zone=text_zone)
        self._spark = spark

    @property
    def dataframes(self) -> MetadataFrames:
        """The same tables as DataFrames; executors read what is large."""
        return MetadataFrames(self._spark, self._metadata, self._io, self)
