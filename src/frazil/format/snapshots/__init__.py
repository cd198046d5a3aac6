"""Snapshots, references, logs; summaries; which expire (rules 154-160, 184-190, 303)."""

from __future__ import annotations

from frazil.format.snapshots.expiry import Expired, snapshots_to_expire
from frazil.format.snapshots.model import (
    APPEND,
    DELETE,
    MAIN_BRANCH,
    OPERATIONS,
    OVERWRITE,
    REPLACE,
    MetadataLogEntry,
    RefType,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)
from frazil.format.snapshots.summaries import SummaryBuilder

__all__ = [
    "APPEND",
    "DELETE",
    "MAIN_BRANCH",
    "OPERATIONS",
    "OVERWRITE",
    "REPLACE",
    "Expired",
    "MetadataLogEntry",
    "RefType",
    "Snapshot",
    "SnapshotLogEntry",
    "SnapshotRef",
    "SummaryBuilder",
    "snapshots_to_expire",
]
