"""The version of Frazil: here, since a package that came as an archive has no metadata of pip."""

from __future__ import annotations

from typing import Final

FRAZIL_VERSION: Final = "0.1.0"
