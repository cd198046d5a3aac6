"""Write-audit-publish: where a session's writes go, and which branch its reads see."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from frazil.errors import ValidationError
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import WAP_ENABLED
from frazil.format.snapshots import MAIN_BRANCH, Snapshot

WAP_ID = "spark.wap.id"
WAP_BRANCH = "spark.wap.branch"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a write goes.

    Attributes:
        branch: the branch whose head it builds on; None is `main`.
        wap_id: when set, the snapshot is staged under this id and no branch moves.
        makes_branch: the branch is not there yet and begins at `main`'s head.
    """

    branch: str | None = None
    wap_id: str | None = None
    makes_branch: bool = False

    def head(self, metadata: TableMetadata) -> Snapshot | None:
        """What is there before the write; NoSuchRefError where there is no such branch."""
        if self.makes_branch:
            return metadata.current_snapshot
        return metadata.ref_snapshot(self.branch or MAIN_BRANCH)


def destination(spark: SparkSession, metadata: TableMetadata, branch: str | None) -> Destination:
    """Where a write to a branch goes, as the session says for write-audit-publish.

    Raises:
        ValidationError: ``spark.wap.id`` and ``spark.wap.branch`` are both set, or one of them
            contradicts the branch.
    """
    if not WAP_ENABLED.of(metadata.properties):
        return Destination(branch)
    wap_id = spark.conf.get(WAP_ID, None) or None
    wap_branch = spark.conf.get(WAP_BRANCH, None) or None
    if wap_id is not None and wap_branch is not None:
        raise ValidationError(f"{WAP_ID} is {wap_id!r} and {WAP_BRANCH} is {wap_branch!r}: set one")
    if wap_branch is None:
        if wap_id is not None and branch not in (None, MAIN_BRANCH):
            raise ValidationError(
                f"{WAP_ID} is {wap_id!r}, so the snapshot is staged and cannot go to the branch "
                f"{branch!r}"
            )
        return Destination(branch, wap_id)
    if branch not in (None, wap_branch):
        raise ValidationError(
            f"the write names the branch {branch!r}, but {WAP_BRANCH} is {wap_branch!r}"
        )
    return Destination(wap_branch, makes_branch=wap_branch not in metadata.refs)


def refuse_replacement(spark: SparkSession, metadata: TableMetadata) -> None:
    """Refuse to replace a table whose writes the session keeps to itself.

    Raises:
        ValidationError: a replacement is of `main`; it cannot be staged.
    """
    target = destination(spark, metadata, None)
    if target.wap_id is not None or target.branch is not None:
        setting = WAP_ID if target.wap_id is not None else WAP_BRANCH
        raise ValidationError(
            f"the table cannot be replaced while {setting} is set: a replacement cannot be staged; "
            f"unset {setting}, or overwrite the table instead"
        )


def branch_to_read(spark: SparkSession, metadata: TableMetadata) -> str | None:
    """The branch that a session reads where a scan names none; None is `main`."""
    # A malformed property must not make the table unreadable.
    if not WAP_ENABLED.of_or_default(metadata.properties):
        return None
    wap_branch = spark.conf.get(WAP_BRANCH, None)
    return wap_branch if wap_branch in metadata.refs else None
