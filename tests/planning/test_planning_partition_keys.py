"""Partitions are told apart alike as values, as columns and in an operation."""

import struct

import polars as pl
import pytest

from frazil.format.partitions.keys import partition_key
from frazil.planning.frames import partition_keys
from frazil.table.manifests.file_keys import partition_key as key_of_operation

OTHER_NAN = struct.unpack(">d", struct.pack(">Q", 0xFFF8000000000001))[0]
FLOATS = [0.0, -0.0, 1.5, float("nan"), OTHER_NAN, None]
# By the specification: -0.0 is not 0.0, all NaN are one, NULL is one of its own.
DIFFERENT = [0, 1, 2, 3, 3, 4]


def numbered(keys):
    seen = {}
    return [seen.setdefault(key, len(seen)) for key in keys]


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_columns_of_floats(dtype):
    assert numbered(partition_keys(pl.Series("p", FLOATS, dtype=dtype)).to_list()) == DIFFERENT


def test_tuples_of_floats():
    assert numbered(partition_key((value,)) for value in FLOATS) == DIFFERENT
    assert numbered(key_of_operation(1, (value,)) for value in FLOATS) == DIFFERENT


def test_the_spec_tells_partitions_apart_too():
    assert key_of_operation(1, ("a",)) != key_of_operation(2, ("a",))
    assert key_of_operation(1, ("a", None)) == key_of_operation(1, ("a", None))


def test_columns_of_other_values_are_their_own_keys():
    values = pl.Series("p", ["a", None, "a", "b"])
    assert partition_keys(values).equals(values)
