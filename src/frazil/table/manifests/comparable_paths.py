"""Paths of files as parts that can be compared: scheme, authority, and the path in the store."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from frazil.errors import ValidationError

EQUAL_SCHEMES: Final[Mapping[str, str]] = {"s3a,s3n": "s3"}
"""Schemes that are the same as another unless more is said, as in Java."""

COMPARABLE: Final = {"scheme": pl.String(), "authority": pl.String(), "key": pl.String()}
"""The columns of comparable paths: in lower case, NULL where a path has none."""

_URI: Final = r"(?s)^(?:([A-Za-z][A-Za-z0-9+.\-]*):(?:/{2}([^/]*))?)?(/.*|[^:/]*(?:/.*)?)$"


@dataclass(frozen=True, slots=True)
class ComparablePaths:
    """How paths are compared; may be sent to other processes.

    Attributes:
        schemes: by the name of a scheme, the one that it counts as.
        authorities: the same for authorities.
    """

    schemes: Mapping[str, str] = field(default_factory=dict)
    authorities: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
    ) -> ComparablePaths:
        """Return the comparison with names that are equal, as ``{"s3a,s3n": "s3"}``."""
        return cls(
            _flat_names({**EQUAL_SCHEMES, **(equal_schemes or {})}, "equal_schemes"),
            _flat_names(equal_authorities or {}, "equal_authorities"),
        )

    def parts(self, paths: pl.Series, *, real_folders: Collection[str] = ()) -> pl.DataFrame:
        """Return the parts of each path.

        Doubled slashes count as one. Links of the local disk are followed, so that a file is found
        by whatever name it has.
        `real_folders` are folders of the local disk that are known to be reached through no link.
        """
        path = pl.col("path")
        groups = (
            paths.alias("path")
            .to_frame()
            .select(
                path.str.extract(_URI, 1).str.to_lowercase().alias("scheme"),
                path.str.extract(_URI, 2).str.to_lowercase().alias("authority"),
                # What is no URI is all key.
                pl.coalesce(path.str.extract(_URI, 3), path)
                .str.replace_all("/{2,}", "/")
                .alias("key"),
            )
        )
        is_local = pl.col("scheme").is_null() | (pl.col("scheme") == "file")
        no_host = pl.col("authority").is_in(["", "localhost"]) & is_local
        named = groups.with_columns(
            pl.col("scheme").replace(dict(self.schemes)),
            pl.when(~no_host).then(pl.col("authority")).replace(dict(self.authorities)),
            is_local.alias("is_local"),
        )
        return _with_links_followed(named, real_folders).select(*COMPARABLE)


def _with_links_followed(frame: pl.DataFrame, real_folders: Collection[str]) -> pl.DataFrame:
    split = frame.with_columns(
        pl.col("key").str.extract("^(.*)/[^/]*$", 1).alias("folder"),
        pl.col("key").str.extract("([^/]*)$", 1).alias("name"),
    )
    folders = split.filter("is_local")["folder"].drop_nulls().unique().to_list()
    known = set(real_folders)
    # An absolute one alone says where it is.
    asked = [each for each in folders if each not in known and each.startswith("/")]
    real = {folder: found for folder in asked if (found := os.path.realpath(folder)) != folder}
    if not real:
        return frame
    moved = pl.col("is_local") & pl.col("folder").is_in(list(real))
    there = pl.concat_str(pl.col("folder").replace(real), pl.lit("/"), pl.col("name"))
    return split.with_columns(pl.when(moved).then(there).otherwise("key").alias("key"))


def _flat_names(equal: Mapping[str, str], argument: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for names, one in equal.items():
        for name in names.split(","):
            if not name.strip() or not one.strip():
                raise ValidationError(
                    f"{argument} holds {names!r}: {one!r}; give names as 's3a,s3n' and the one "
                    "that they are equal to"
                )
            found[name.strip().lower()] = one.strip().lower()
    return found
