"""Snapshots, references and logs as values (rules 154-160, 184-190); `snapshots` is public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

MAIN_BRANCH = "main"

APPEND = "append"
REPLACE = "replace"
OVERWRITE = "overwrite"
DELETE = "delete"
OPERATIONS = frozenset({APPEND, REPLACE, OVERWRITE, DELETE})

RefType = Literal["branch", "tag"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a table at one moment (rule 154).

    `summary` is the JSON object as it stands, with its `operation` key. `manifests` is v1's list of
    manifest paths and excludes `manifest_list`. `sequence_number` is 0 in v1.
    """

    snapshot_id: int
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    timestamp_ms: int
    manifest_list: str | None = None
    manifests: tuple[str, ...] | None = None
    summary: Mapping[str, str] | None = None
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None
    # Every commit writes every snapshot again: its JSON by format version, once it was made.
    json_texts: dict[int, str] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    @property
    def operation(self) -> str | None:
        """append, replace, overwrite or delete; None where v1 did not say (rule 155)."""
        return None if self.summary is None else self.summary.get("operation")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRef:
    """A branch or a tag (rule 184); ages are milliseconds, None means the table's default."""

    snapshot_id: int
    type: RefType
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None

    @property
    def is_branch(self) -> bool:
        """Whether commits can move the reference."""
        return self.type == "branch"


@dataclass(frozen=True, slots=True)
class SnapshotLogEntry:
    """From `timestamp_ms` on, `snapshot_id` was the current snapshot (rule 189)."""

    timestamp_ms: int
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class MetadataLogEntry:
    """A metadata file that was current before (rule 190)."""

    timestamp_ms: int
    metadata_file: str
