"""The two orders of uuids: by bytes, as the specification has it, and by two signed halves.

Java 1.12 and Trino compare bounds of uuids as two signed numbers (apache/iceberg issue 14216).
Where both orders say the same of a range, they prune by it rightly.
"""

from __future__ import annotations

from typing import Final

_SIGN: Final = 0x80


def orders_agree(lower: bytes, upper: bytes) -> bool:
    """Return whether a range of uuids, given by its ends in the order of bytes, is one in both.

    Ends that begin on the same side of 8 are ordered alike by their first halves; the second halves
    of uuids of RFC 9562 all begin with 8 to b.
    """
    if lower == upper:
        return True
    same_side = (lower[0] < _SIGN) == (upper[0] < _SIGN)
    return same_side and lower[8] >= _SIGN and upper[8] >= _SIGN
