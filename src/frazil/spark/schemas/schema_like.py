"""Schemas in whatever form a user has them."""

from __future__ import annotations

from typing import TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructField, StructType

from frazil.errors import ValidationError
from frazil.format.schema import Schema
from frazil.format.schema.ddl import schema_of_ddl, type_of_ddl
from frazil.format.types import IcebergType, as_type
from frazil.spark.types import query_schema_from_spark, schema_from_spark

SchemaLike: TypeAlias = "Schema | StructType | DataFrame | str"
"""A Frazil schema, a Spark schema, a DataFrame (its schema), or DDL text."""


def schema_of(schema: SchemaLike | None) -> Schema:
    """Return the schema of anything that names columns and types.

    Raises:
        ValidationError: it is of another kind.
        UnsupportedError: a Spark type has no Iceberg type.
    """
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str):
        return _parse_ddl(schema)
    if isinstance(schema, StructType):
        return schema_from_spark(schema)
    fields = getattr(schema, "schema", None)
    if isinstance(fields, StructType):
        # A query's nullability says little about the table that it fills, so all become optional.
        return query_schema_from_spark(fields)
    raise ValidationError(
        f"a schema is DDL text, a Spark StructType, a DataFrame or a frazil.Schema, "
        f"not {type(schema).__name__}"
    )


def column_type(given: IcebergType | DataType | str) -> IcebergType:
    """Return the type of a column to add: one of Iceberg by its name, or what a schema takes.

    A name that both know, as ``timestamp``, is Iceberg's; within a nested type it is Spark's, as in
    the DDL text of a table. Ids are to be given anew.

    Raises:
        ValidationError: it is no type.
        UnsupportedError: a Spark type has no Iceberg type.
    """
    if isinstance(given, DataType):
        return _of_spark(given)
    try:
        return as_type(given)
    except ValidationError:
        if not isinstance(given, str):
            raise
        try:
            return type_of_ddl(given)
        except ValidationError:
            if "<" in given:
                raise
        raise


def _of_spark(data_type: DataType) -> IcebergType:
    (field,) = schema_from_spark(StructType([StructField("column", data_type)])).fields
    return field.field_type


def _parse_ddl(ddl: str) -> Schema:
    try:
        parsed = StructType.fromDDL(ddl)
    except PySparkException as error:
        try:
            # Iceberg has words for types that Spark knows none for.
            return schema_of_ddl(ddl)
        except ValidationError:
            raise ValidationError(f"{ddl!r} is no schema: {_first_line(error)}") from error
    if not isinstance(parsed, StructType):
        raise ValidationError(
            f"{ddl!r} is one type, not a schema; write 'id bigint not null, city string'"
        )
    return schema_from_spark(parsed)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")
