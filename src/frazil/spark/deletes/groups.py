"""Data files grouped by the kinds of deletes that apply to them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from frazil.errors import InvalidManifestError
from frazil.spark.deletes.equality import EqualityDeletes
from frazil.spark.read.inputs import (
    EQUALITY_DELETES,
    GLOBAL_SCOPE,
    POSITION_DELETES,
    ReadInput,
)


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Data files under the same kinds of deletes.

    Attributes:
        files: rows of the plan's files.
        has_positions: whether position deletes or vectors apply to each of them.
        equality: the equality deletes, one entry a list of compared columns.
        has_resolved: whether equality deletes of each of them are known as positions.
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


def delete_groups(
    plan: ReadInput, files: pl.DataFrame, resolved: Collection[int] = ()
) -> list[DeleteGroup]:
    """The files in groups; files without deletes come first.

    Args:
        resolved: ordinals of files of which equality deletes are known as positions.

    Raises:
        InvalidManifestError: an equality delete file without equality ids (rule 121).
    """
    if not len(plan.pairs) and not resolved:
        return [DeleteGroup(files, has_positions=False, equality=())]
    deletes = plan.deletes.with_columns(
        pl.col("equality_ids").list.sort().cast(pl.List(pl.String)).list.join(",").alias("key")
    )
    broken = deletes.filter(
        (pl.col("content") == EQUALITY_DELETES) & (pl.col("key").fill_null("") == "")
    )
    if len(broken):
        raise InvalidManifestError(
            "an equality delete file has no equality ids",
            file=broken["path"][0],
            field="equality_ids",
        )
    applied = plan.pairs.join(deletes.select("delete", "content", "key"), on="delete")
    is_equality = pl.col("content") == EQUALITY_DELETES
    kinds = applied.group_by("ordinal").agg(
        (pl.col("content") == POSITION_DELETES).any().alias("has_positions"),
        pl.col("key").filter(is_equality).unique().sort().str.join(";").alias("lists"),
    )
    marked = files.join(kinds, on="ordinal", how="left", maintain_order="left").with_columns(
        pl.col("has_positions").fill_null(False),
        pl.col("lists").fill_null(""),
        pl.col("ordinal").is_in(list(resolved)).alias("has_resolved"),
    )
    groups = []
    told = ["has_positions", "has_resolved", "lists"]
    for (has_positions, has_resolved, lists), members in marked.group_by(told, maintain_order=True):
        chosen = members.drop(told)
        equality = tuple(
            _equality(key, deletes, applied, chosen) for key in str(lists).split(";") if key
        )
        groups.append(
            DeleteGroup(
                chosen,
                has_positions=bool(has_positions),
                equality=equality,
                has_resolved=bool(has_resolved),
            )
        )
    return sorted(groups, key=lambda group: group.has_deletes)


def _equality(
    key: str, deletes: pl.DataFrame, applied: pl.DataFrame, files: pl.DataFrame
) -> EqualityDeletes:
    pairs = applied.filter((pl.col("content") == EQUALITY_DELETES) & (pl.col("key") == key)).join(
        files.select("ordinal"), on="ordinal", how="semi"
    )
    used = deletes.join(pairs.select("delete").unique(), on="delete", how="semi")
    oldest = used.select(pl.col("sequence_number").min()).item()
    newest_file = files.select(pl.col("sequence_number").max()).item()
    scopes = {*used["scope"].unique()} - {GLOBAL_SCOPE}
    return EqualityDeletes(
        ids=tuple(int(part) for part in key.split(",")),
        deletes=used.drop("key"),
        needs_sequence=newest_file >= oldest,
        needs_scope=bool(scopes) and (len(scopes) > 1 or scopes != {*files["scope"].unique()}),
    )
