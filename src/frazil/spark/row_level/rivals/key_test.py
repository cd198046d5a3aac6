"""Data files that hold none of some keys, told without a job of Spark.

What a rival adds is mostly a small file, and most rivals are about other keys. To read one column
of it takes some milliseconds here; a job takes a tenth of a second, at each try of a commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from frazil.format.metadata.table_mapping import name_mapping_of
from frazil.format.types import NestedField
from frazil.spark.files.arrow.files import FilePart, TableColumns, read_batches
from frazil.spark.row_level.target import Target
from frazil.spark.session import costs
from frazil.storage.side_by_side import in_threads


@dataclass(frozen=True, slots=True, eq=False)
class KeyTest:
    """The values of one column that every row which a command is about has one of.

    Attributes:
        field: the column, at the top level of the table; of whole numbers.
        values: as 64-bit integers, without NULL.
        may_be_null: whether such a row may have NULL there.
    """

    field: NestedField
    values: pa.Array
    may_be_null: bool = False

    def left_of(self, target: Target) -> Target:
        """Return the target with those of its files that may hold such a row."""
        plan, cost = target.plan, costs.ADDED_KEYS
        if not plan.file_count or plan.record_count > cost.here:
            return target
        table = TableColumns(fields=target.schema.fields, mapping=name_mapping_of(target.metadata))
        files = plan.files.select("file_path", "file_format", "spec_id").to_dicts()
        may = in_threads(
            lambda file: self._may_be_in(target, table, file),
            files,
            name="frazil-added-keys",
            threads=cost.threads,
        )
        return target.where_files(pl.Series(may, dtype=pl.Boolean))

    def _may_be_in(self, target: Target, table: TableColumns, file: Mapping[str, Any]) -> bool:
        spec = target.metadata.spec_by_id(file["spec_id"])
        if self.field.field_id in spec.identity_source_ids:
            # The file may lack the column, and metadata has left out files of other values.
            return True
        part = FilePart(path=file["file_path"], file_format=file["file_format"])
        for _, _, [column] in read_batches(target.io, part, [self.field], table):
            if self.may_be_null and column.null_count:
                return True
            if pc.any(pc.is_in(column.cast(pa.int64()), value_set=self.values)).as_py():
                return True
        return False
