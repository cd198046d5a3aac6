"""Values: internal form to and from bytes, JSON and Python (rules 275-278; docs/architecture.md).

``to_bytes`` and ``from_bytes`` are the single-value binary form of bounds, ``to_json`` and
``from_json`` the single-value JSON form of defaults, ``coerce`` takes what users write and
``to_python`` gives what they expect.
"""

from __future__ import annotations

from frazil.format.values.binary import from_bytes, to_bytes
from frazil.format.values.coercion import coerce, to_python
from frazil.format.values.json_form import from_json, to_json

__all__ = ["coerce", "from_bytes", "from_json", "to_bytes", "to_json", "to_python"]
