"""Iceberg's bucket hash (murmur3 x86 32, seed 0) as Spark expressions (SPEC rules 84, 265-273).

Spark's ``hash`` is murmur3 with seed 42, its state goes from one argument into the next, and
`SEED_ZERO` is the one int that it hashes to 0: so ``hash(SEED_ZERO, x)`` is murmur3 of x with
seed 0. That is Iceberg's hash for a long and for bytes whose count is a multiple of four.

Other counts end in a tail that Spark mixes in its own way. Padded with zeros to whole words, the
tail is one more word to Spark, and the word's mixing has only two steps more than the tail's in
the standard: ``rotl(y, 13) * 5 + c`` and another length in the finaliser. Every one of those steps
can be undone in 32 bits, so the standard's hash follows by arithmetic.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

SEED_ZERO: Final = -1693959553

_WORD: Final = 0xFFFFFFFF
_C1: Final = 0x85EBCA6B
_C2: Final = 0xC2B2AE35
_BLOCK_ADDEND: Final = 0xE6546B64
_BLOCK_FACTOR: Final = 5
_MODULUS: Final = 1 << 32


def long_hash(value: Column) -> Column:
    """The hash of a bigint, or of a timestamp, which Spark keeps as one; never null."""
    return F.hash(F.lit(SEED_ZERO), value)


def bytes_hash(value: Column) -> Column:
    """The hash of a string's UTF-8 bytes or of a binary value."""
    length = F.octet_length(value)
    whole = (length.bitwiseAND(F.lit(3))) == 0
    return F.when(whole, long_hash(value).cast("bigint")).otherwise(_tail_hash(value, length))


def bucket(hashed: Column, buckets: int) -> Column:
    """The bucket of a hash: its low 31 bits modulo the count (rule 84)."""
    return (hashed.bitwiseAND(F.lit(0x7FFFFFFF)) % F.lit(buckets)).cast("int")


def _tail_hash(value: Column, length: Column) -> Column:
    padded_length = (length + 3).bitwiseAND(F.lit(-4))
    padded = F.rpad(value.cast("binary"), padded_length, F.lit(b"\x00"))
    hashed = long_hash(padded).cast("bigint")
    # A lambda binds the state once: as plain expressions each use would repeat all before it.
    states = F.transform(F.array(hashed), lambda h: _state_before_tail_mix(h, padded_length))
    return F.transform(states, lambda y: _finalised(y, length))[0]


def _state_before_tail_mix(hashed: Column, padded_length: Column) -> Column:
    """What the state was before Spark's last word went through rotation, factor and finaliser."""
    h = _xor_shift(hashed, 16)
    h = _times(h, pow(_C2, -1, _MODULUS))
    h = h.bitwiseXOR(_shifted(h, 13)).bitwiseXOR(_shifted(h, 26))
    h = _times(h, pow(_C1, -1, _MODULUS))
    h = _xor_shift(h, 16)
    h = h.bitwiseXOR(padded_length.cast("bigint"))
    h = _times(h - _signed(_BLOCK_ADDEND), pow(_BLOCK_FACTOR, -1, _MODULUS))
    return _as_signed(_shifted(h, 13).bitwiseOR(F.shiftleft(h, 19)))


def _finalised(state: Column, length: Column) -> Column:
    """Murmur3's last mixing of a state with the count of bytes."""
    h = state.bitwiseXOR(length.cast("bigint"))
    h = _times(_xor_shift(h, 16), _C1)
    h = _times(_xor_shift(h, 13), _C2)
    return _xor_shift(h, 16)


# 32-bit words are kept sign-extended in a bigint: the product of two of them always fits, so no
# step overflows, with or without ANSI mode.


def _signed(word: int) -> int:
    return word - _MODULUS if word >= 1 << 31 else word


def _as_signed(value: Column) -> Column:
    return F.shiftright(F.shiftleft(value, 32), 32)


def _times(value: Column, factor: int) -> Column:
    return _as_signed(value * F.lit(_signed(factor)))


def _shifted(value: Column, bits: int) -> Column:
    return F.shiftright(value.bitwiseAND(F.lit(_WORD)), bits)


def _xor_shift(value: Column, bits: int) -> Column:
    return value.bitwiseXOR(_shifted(value, bits))
