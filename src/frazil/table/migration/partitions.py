"""The partitions of files that are brought in, as a table's partition spec states them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import polars as pl

from frazil.errors import UnsupportedError, ValidationError
from frazil.format.metadata import TableMetadata
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import IdentityTransform
from frazil.format.schema import Schema
from frazil.format.types import BinaryType, FixedType, IcebergType
from frazil.format.values import to_bytes
from frazil.format.values.coercion import coerce
from frazil.table.migration.folders import NULL_FOLDER, SourceFiles, text_column


def value_column(number: int) -> str:
    """Return the name of the column with a field's values, as hex of their bytes."""
    return f"value_{number}"


def compatible_spec(metadata: TableMetadata, names: Sequence[str], source: str) -> PartitionSpec:
    """Return the table's spec of just these columns in this order, unchanged.

    The current spec comes first, then the others.
    """
    wanted = [name.lower() for name in names]
    tops = {each.field_id for each in metadata.schema.fields}
    specs = sorted(metadata.partition_specs, key=lambda s: s.spec_id != metadata.default_spec_id)
    for spec in specs:
        fields = [each for each in spec.fields if not each.is_void]
        if len(fields) == len(wanted) and all(
            isinstance(each.transform, IdentityTransform)
            and each.source_id in tops
            and name in _names(each, metadata.schema)
            for each, name in zip(fields, wanted, strict=True)
        ):
            return spec
    shown = "; ".join(f"[{', '.join(map(str, each.fields))}]" for each in specs)
    raise ValidationError(
        f"no partition spec of the table matches the partition columns {list(names)} of {source}: "
        f"its specs are {shown}. A spec of just these columns, unchanged and in this order, can be "
        "added with update_spec()"
    )


def _names(field: PartitionField, schema: Schema) -> set[str]:
    source = schema.field_or_none(field.source_id)
    return {field.name.lower(), *(() if source is None else (source.name.lower(),))}


@dataclass(frozen=True, slots=True)
class PartitionTexts:
    """How texts become values of a spec's fields.

    Attributes:
        spec: the spec.
        schema: of the table.
        zone: of timestamps that are text.
    """

    spec: PartitionSpec
    schema: Schema
    zone: str | tzinfo

    def with_values(self, files: SourceFiles, source: str) -> pl.DataFrame:
        """Return the column ``path``, and by `value_column` the values of each field."""
        frame = files.frame
        columns = [pl.col("path")]
        fields = [each for each in self.spec.fields if not each.is_void]
        for number, each in enumerate(fields):
            texts = frame[text_column(number)].drop_nulls().unique().to_list()
            values = {text: self._bytes(each, text, source).hex() for text in texts}
            column = pl.col(text_column(number)).replace_strict(values, return_dtype=pl.String())
            columns.append(column.alias(value_column(self.spec.fields.index(each))))
        columns += [
            pl.lit(None, pl.String()).alias(value_column(number))
            for number, each in enumerate(self.spec.fields)
            if each.is_void
        ]
        return frame.select(columns)

    def with_partition_values(
        self, frame: pl.DataFrame, wanted: Mapping[str, Any], table: str
    ) -> pl.DataFrame:
        """Return the files of the partitions that have these values.

        `wanted`: by the name of a partition column, its value; NULL is None.
        """
        fields = {
            name: (number, each)
            for number, each in enumerate(self.spec.fields)
            if not each.is_void
            for name in _names(each, self.schema)
        }
        if wanted and not fields:
            raise ValidationError(
                f"partition_filter is {dict(wanted)!r}, and the files are for an unpartitioned "
                f"spec of {table}: leave the filter out"
            )
        for name, value in wanted.items():
            if name.lower() not in fields:
                known = [each.name for each in self.spec.fields if not each.is_void]
                raise ValidationError(
                    f"partition_filter names {name!r}, which is no partition column of {table}: "
                    f"they are {known}"
                )
            number, each = fields[name.lower()]
            column = pl.col(value_column(number))
            if value is None or value == NULL_FOLDER:
                frame = frame.filter(column.is_null())
            else:
                frame = frame.filter(column == self._bytes(each, value, "partition_filter").hex())
        return frame

    def _bytes(self, field: PartitionField, value: Any, source: str) -> bytes:
        kind = self.schema.find_type(field.source_id)
        try:
            return to_bytes(kind, partition_value(kind, value, zone=self.zone))
        except (ValidationError, UnsupportedError) as error:
            raise ValidationError(
                f"{field.name}={value} of {source} is no value of the column, which is {kind}: "
                f"{error}"
            ) from error


def partition_value(kind: IcebergType, value: Any, *, zone: str | tzinfo) -> Any:
    """Return the internal value of a partition's text."""
    if isinstance(kind, BinaryType | FixedType) and isinstance(value, str):
        value = value.encode()
    return coerce(kind, value, zone=zone)
