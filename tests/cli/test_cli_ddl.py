"""Columns as text mean what they mean in Spark."""

import pyspark
import pytest
from pyspark.sql.types import StructType

from frazil.errors import ValidationError
from frazil.format.schema.ddl import schema_of_ddl
from frazil.format.types import type_named
from frazil.spark.types import schema_from_spark

# A quotation mark of two is none of Spark 4.0's.
QUOTED = "its" if pyspark.__version__ < "4.1" else "it''s"
SAME = [
    "id bigint",
    "id BIGINT NOT NULL COMMENT 'the key', city string",
    "a int, b integer, c long, d smallint, e short, f tinyint, g byte, h real, i float, j double",
    "a decimal, b decimal(9), c dec(9, 2), d numeric(5,1), e boolean, f binary, g date, h void",
    "a timestamp, b timestamp_ntz, c timestamp_ltz, d variant",
    "`a.b` string, `c``d` int, `größe` int",
    "s struct<a: int, b: array<struct<c double>>> not null, m map<string, array<int>>",
    f"s struct<a: int not null comment '{QUOTED}', `x y`: string>, e struct<>",
    "a string comment \"it's\", b string comment 'two\\'s'",
    "char char(3), varchar varchar(9), date date, struct string",
]
WRONG = {
    "": "no columns",
    "id": "the end after 'id': a type",
    "id bigit": "'bigit' after 'id'",
    "a int64": "a type that Spark and Iceberg know",
    "a datetime": "a type that Spark and Iceberg know",
    "id bigint nut null": "'nut' after 'id bigint'",
    "id bigint, ": "a column",
    "id bigint city string": "'city'",
    "s struct<a int": "the end",
    "a array<int": "'>'",
    "a varchar": "a length",
    "a fixed": "a length",
    "a fixed(3]": "','",
    "a char[3]": "a length",
    "a decimal(x)": "a number",
    "a string comment x": "quotation",
    "a int; drop": "';'",
    "größe int": "'ö'",
}


@pytest.mark.parametrize("text", SAME)
def test_columns_are_read_as_spark_reads_them(spark, text):
    assert schema_of_ddl(text) == schema_from_spark(StructType.fromDDL(text))


# The names of Iceberg's specification, for types that Spark has no word for.
OWN = {
    "uuid": "uuid",
    "UUID": "uuid",
    "fixed(16)": "fixed[16]",
    "Fixed[3]": "fixed[3]",
    "timestamp_ns": "timestamp_ns",
    "TIMESTAMPTZ_NS": "timestamptz_ns",
}


@pytest.mark.parametrize("word", OWN)
def test_types_of_iceberg_alone(word):
    kind = type_named(OWN[word])
    flat, *nested = schema_of_ddl(
        f"a {word} not null, s struct<x: {word}>, l array<{word}>, m map<string, {word}>"
    ).fields
    assert (flat.field_type, flat.required) == (kind, True)
    inside = [
        nested[0].field_type.fields[0].field_type,
        nested[1].field_type.element_type,
        nested[2].field_type.value_type,
    ]
    assert inside == [kind] * 3


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_says_where_it_is(text):
    with pytest.raises(ValidationError) as caught:
        schema_of_ddl(text)
    assert WRONG[text] in str(caught.value)
