"""Data files grouped by the kinds of deletes that apply to them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from frazil.errors import InvalidManifestError
from frazil.planning.deletes.index import EQUALITY_DELETES, GLOBAL_SCOPE, DeleteIndex
from frazil.planning.deletes.own_files import lacks_equality_ids
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.equality import EqualityDeletes

_FEW_BYTES: Final = 8
"""Files without deletes are read along where the others have so many times their bytes."""


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Data files under the same kinds of deletes.

    Attributes:
        files: rows of the plan's files.
        has_positions: whether position deletes or vectors apply to them.
        equality: the equality deletes, one entry a list of compared columns.
        has_resolved: whether equality deletes of them are known as positions.
    """

    files: pl.DataFrame
    has_positions: bool
    equality: tuple[EqualityDeletes, ...]
    has_resolved: bool = False

    @property
    def has_deletes(self) -> bool:
        """Whether any delete applies."""
        return self.by_position or bool(self.equality)

    @property
    def by_position(self) -> bool:
        """Whether any delete applies by a row's position."""
        return self.has_positions or self.has_resolved


def delete_groups(plan: ScanPlan, resolved: Collection[int] = ()) -> list[DeleteGroup]:
    """The plan's files in groups; files without deletes come first.

    Args:
        resolved: ordinals of files of which equality deletes are known as positions.

    Raises:
        InvalidManifestError: an equality delete file without equality ids (rule 121).
    """
    index = plan.delete_index
    if index.is_empty and not resolved:
        return [DeleteGroup(plan.files, has_positions=False, equality=())]
    deletes = plan.deletes.with_columns(
        pl.col("equality_ids").list.sort().cast(pl.List(pl.String)).list.join(",").alias("key")
    )
    is_equality = pl.col("content") == EQUALITY_DELETES
    broken = deletes.filter(lacks_equality_ids(deletes))
    if len(broken):
        raise InvalidManifestError(
            "an equality delete file has no equality ids",
            file=broken["file_path"][0],
            field="equality_ids",
        )
    by_position = index.for_deletes(deletes.filter(~is_equality)["delete"])
    members_of = {
        str(key): members
        for (key,), members in deletes.filter(is_equality)
        .sort("key")
        .group_by("key", maintain_order=True)
    }
    by_keys = {key: index.for_deletes(members["delete"]) for key, members in members_of.items()}
    # Files older than every delete need no look at numbers; streams of changes leave both kinds.
    number = pl.col("sequence_number")
    is_older = [number < members["sequence_number"].min() for members in members_of.values()]
    marked = plan.files.with_columns(
        _has_deletes(by_position).alias("has_positions"),
        pl.col("ordinal").is_in(list(resolved)).alias("has_resolved"),
        *(_has_deletes(some).alias(f"keys {key}") for key, some in by_keys.items()),
        *(
            (older & _has_deletes(some)).alias(f"older {key}")
            for older, (key, some) in zip(is_older, by_keys.items(), strict=True)
        ),
    )
    list_columns = [f"keys {key}" for key in by_keys]
    kinds = ["has_positions", "has_resolved", *list_columns, *(f"older {key}" for key in by_keys)]
    groups = []
    for (has_positions, has_resolved, *lists), members in marked.group_by(
        kinds, maintain_order=True
    ):
        chosen = members.drop(kinds)
        applied = zip(by_keys.items(), lists[: len(by_keys)], strict=True)
        equality = tuple(_equality(key, deletes, some, chosen) for (key, some), on in applied if on)
        groups.append(
            DeleteGroup(
                chosen,
                has_positions=bool(has_positions),
                equality=equality,
                has_resolved=bool(has_resolved),
            )
        )
    return sorted(groups, key=lambda group: group.has_deletes)


def with_few_others(groups: Sequence[DeleteGroup]) -> list[DeleteGroup]:
    """The groups, where a few files without deletes are read along with those under positions.

    No position of them is deleted, so the test of their rows costs little. A scan of their own has
    a program of its own, which Spark compiles, and tasks that may be small: an update leaves such
    files.
    """
    plain = [group for group in groups if not group.has_deletes]
    tested = [group for group in groups if group.by_position and not group.equality]
    if not plain or not tested:
        return [*groups]
    few, many = plain[0].files, max((group.files for group in tested), key=_bytes)
    if len(few) > len(many) or _FEW_BYTES * _bytes(few) > _bytes(many):
        return [*groups]
    return [
        replace(group, files=pl.concat([many, few])) if group.files is many else group
        for group in groups
        if group.has_deletes
    ]


def _bytes(files: pl.DataFrame) -> int:
    return int(files["file_size_in_bytes"].sum())


def _has_deletes(index: DeleteIndex) -> pl.Expr:
    return pl.col("ordinal").is_in(index.ordinals().implode())


def _equality(
    key: str, deletes: pl.DataFrame, index: DeleteIndex, files: pl.DataFrame
) -> EqualityDeletes:
    here = index.for_files(files["ordinal"]).deletes()
    used = deletes.filter(pl.col("delete").is_in(here.implode()))
    oldest = used.select(pl.col("sequence_number").min()).item()
    newest_file = files.select(pl.col("sequence_number").max()).item()
    scopes = {*used["scope"].unique()} - {GLOBAL_SCOPE}
    return EqualityDeletes(
        ids=tuple(int(part) for part in key.split(",")),
        deletes=used.drop("key"),
        needs_sequence=newest_file >= oldest,
        needs_scope=bool(scopes) and (len(scopes) > 1 or scopes != {*files["scope"].unique()}),
    )
