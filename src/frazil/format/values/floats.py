"""Floating numbers: the nearest ones of 32 bits, and words for those that are not finite."""

from __future__ import annotations

import math
import struct


def nearest_single(value: float) -> float:
    """The number of 32 bits that is nearest; infinite past the largest."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def word_unless_finite(value: float) -> str | None:
    """What Java calls a value that is no finite number; None for one that is."""
    if math.isfinite(value):
        return None
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
