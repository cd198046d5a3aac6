"""Arrow's types by the names that PyArrow writes, as the table of types has them."""

from __future__ import annotations

import pyarrow as pa

ARROW_TYPES: dict[str, pa.DataType] = {
    str(kind): kind
    for kind in (
        *(pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32()),
        *(pa.time64("us"), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns")),
        *(pa.timestamp("ns", "UTC"), pa.string(), pa.uuid(), pa.binary()),
    )
}
"""Every type of a column of one value without parameters."""
