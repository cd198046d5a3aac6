"""Properties of views: their names, and what holds where they are not set."""

from __future__ import annotations

from typing import Final

from frazil.format.properties.kinds import FLAG, Property, whole_number
from frazil.format.properties.table import METADATA_CODEC

VERSION_HISTORY: Final = Property("version.history.num-entries", whole_number(smallest=1), 10)
"""How many versions are kept (rule 285)."""

DROP_DIALECT_ALLOWED: Final = Property("replace.drop-dialect.allowed", FLAG, default=False)
"""Whether a new version may leave out the SQL of an engine that the one before had."""

VIEW_METADATA_CODEC: Final = Property(METADATA_CODEC.name, METADATA_CODEC.kind, "gzip")
"""How metadata files of views are compressed; Java's runtime compresses them, unlike tables'."""
