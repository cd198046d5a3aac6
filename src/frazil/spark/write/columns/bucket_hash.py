"""Iceberg's bucket hash (murmur3 x86 32, seed 0) as Spark expressions (SPEC rules 84, 265-273).

Spark's ``hash`` is murmur3 with seed 42, its state goes from one argument into the next, and
`_SEED_ZERO` is the one int that it hashes to 0: so ``hash(_SEED_ZERO, x)`` is murmur3 of x with
seed 0. That is Iceberg's hash for a long and for bytes whose count is a multiple of four.

Other counts end in a tail that Spark mixes in its own way. Padded with zeros to whole words, the
tail is one more word to Spark, and the word's mixing has only two steps more than the tail's in
the standard: ``rotl(y, 13) * 5 + c`` and another length in the finaliser. Every one of those steps
can be undone in 32 bits, so the standard's hash follows by arithmetic.

The arithmetic is text of SQL, for columns and for statements alike.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

_SEED_ZERO: Final = -1693959553

_WORD: Final = 0xFFFFFFFF
_C1: Final = 0x85EBCA6B
_C2: Final = 0xC2B2AE35
_BLOCK_ADDEND: Final = 0xE6546B64
_BLOCK_FACTOR: Final = 5
_MODULUS: Final = 1 << 32
_LOW_31: Final = 0x7FFFFFFF


def long_hash(value: Column) -> Column:
    """The hash of a bigint, or of a timestamp, which Spark keeps as one; never null."""
    return F.hash(F.lit(_SEED_ZERO), value)


def bytes_hash(value: Column) -> Column:
    """The hash of a string's UTF-8 bytes or of a binary value."""
    length = F.octet_length(value)
    whole = (length.bitwiseAND(F.lit(3))) == 0
    return F.when(whole, long_hash(value).cast("bigint")).otherwise(_tail_hash(value, length))


def bucket(hashed: Column, buckets: int) -> Column:
    """The bucket of a hash: its low 31 bits modulo the count (rule 84)."""
    return (hashed.bitwiseAND(F.lit(_LOW_31)) % F.lit(buckets)).cast("int")


def long_hash_text(value: str) -> str:
    """Return `long_hash` as text of SQL."""
    return f"hash({_SEED_ZERO}, {value})"


def bytes_hash_text(value: str) -> str:
    """Return `bytes_hash` as text of SQL, of bytes; the value stands in it once."""
    b, length = "frazil_bytes", "octet_length(frazil_bytes)"
    padded = long_hash_text(f"rpad({b}, {_padded_text(length)}, X'00')")
    tail = let_text("frazil_hash", f"CAST({padded} AS BIGINT)", _tail_text("frazil_hash", length))
    whole = f"CAST({long_hash_text(b)} AS BIGINT)"
    return let_text(b, value, f"CASE WHEN ({length} & 3) = 0 THEN {whole} ELSE {tail} END")


def bucket_text(hashed: str, buckets: int) -> str:
    """Return `bucket` as text of SQL."""
    return f"CAST(({hashed} & {_LOW_31}) % {buckets} AS INT)"


def let_text(name: str, value: str, body: str) -> str:
    """Return text of SQL in which a name stands for a value, which is computed once.

    As a plain expression each use of a value would repeat all before it.
    """
    return f"transform(array({value}), {name} -> {body})[0]"


def _tail_hash(value: Column, length: Column) -> Column:
    padded_length = (length + 3).bitwiseAND(F.lit(-4))
    padded = F.rpad(value.cast("binary"), padded_length, F.lit(b"\x00"))
    given = F.struct(long_hash(padded).cast("bigint").alias("hash"), length.alias("length"))
    tail = F.expr(f"frazil_of -> {_tail_text('frazil_of.hash', 'frazil_of.length')}")
    return F.call_function("transform", F.array(given), tail)[0]


def _padded_text(length: str) -> str:
    return f"(({length} + 3) & -4)"


def _tail_text(hashed: str, length: str) -> str:
    """The standard's hash, from Spark's hash of the padded bytes."""
    state = _state_before_tail_mix(hashed, _padded_text(length))
    return let_text("frazil_state", state, _finalise("frazil_state", length))


def _state_before_tail_mix(hashed: str, padded_length: str) -> str:
    """What the state was before Spark's last word went through rotation, factor and finaliser."""
    h = _times(_xor_shift(hashed, 16), pow(_C2, -1, _MODULUS))
    h = f"({h} ^ {_shift(h, 13)} ^ {_shift(h, 26)})"
    h = _xor_shift(_times(h, pow(_C1, -1, _MODULUS)), 16)
    h = f"({h} ^ CAST({padded_length} AS BIGINT))"
    h = _times(f"({h} - ({_signed_word(_BLOCK_ADDEND)}))", pow(_BLOCK_FACTOR, -1, _MODULUS))
    return _as_signed(f"({_shift(h, 13)} | shiftleft({h}, 19))")


def _finalise(state: str, length: str) -> str:
    """Murmur3's last mixing of a state with the count of bytes."""
    h = f"({state} ^ CAST({length} AS BIGINT))"
    h = _times(_xor_shift(h, 16), _C1)
    return _xor_shift(_times(_xor_shift(h, 13), _C2), 16)


# 32-bit words are kept sign-extended in a bigint: the product of two of them always fits, so no
# step overflows, with or without ANSI mode.


def _signed_word(word: int) -> int:
    return word - _MODULUS if word >= 1 << 31 else word


def _as_signed(value: str) -> str:
    return f"shiftright(shiftleft({value}, 32), 32)"


def _times(value: str, factor: int) -> str:
    return _as_signed(f"({value} * ({_signed_word(factor)}))")


def _shift(value: str, bits: int) -> str:
    return f"shiftright({value} & {_WORD}, {bits})"


def _xor_shift(value: str, bits: int) -> str:
    return f"({value} ^ {_shift(value, bits)})"
