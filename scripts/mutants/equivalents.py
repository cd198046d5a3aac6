"""Faults that are none, as `equivalent.toml` lists them."""

from __future__ import annotations

import tomllib
from pathlib import Path

from mutants.sites import KINDS

LISTED = Path(__file__).with_name("equivalent.toml")


def reasons(listed: Path = LISTED) -> dict[tuple[str, str, str], str]:
    """Why a fault changes nothing, by module, text of the line, and kind."""
    found = {}
    for one in tomllib.loads(listed.read_text()).get("same", []):
        if one["kind"] not in KINDS:
            raise ValueError(f"{listed}: {one['kind']!r} is none of {', '.join(KINDS)}")
        found[one["path"], one["line"], one["kind"]] = one["why"]
    return found
