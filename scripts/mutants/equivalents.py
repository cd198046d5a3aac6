"""Faults that are none, as `equivalent.toml` lists them."""

from __future__ import annotations

import tomllib
from pathlib import Path

from mutants.sites import KINDS, Site

LISTED = Path(__file__).with_name("equivalent.toml")

Key = tuple[str, str, str, str]
"""Module, text of the line, kind, and what the first line that changes becomes."""


def reasons(listed: Path = LISTED) -> dict[Key, str]:
    """Why a fault changes nothing."""
    found: dict[Key, str] = {}
    for one in tomllib.loads(listed.read_text()).get("same", []):
        if one["kind"] not in KINDS:
            raise ValueError(f"{listed}: {one['kind']!r} is none of {', '.join(KINDS)}")
        found[one["path"], one["line"], one["kind"], one["becomes"]] = one["why"]
    return found


def key_of(site: Site, source: bytes) -> Key:
    """By what a fault is listed."""
    return site.path, site.text, site.kind, site.becomes(source)
