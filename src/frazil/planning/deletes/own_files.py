"""Deletes that are about one data file each: which file that is, and what they may not say.

What no read accepts is found here, for the reads that refuse it and the check that tells it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from frazil.errors import InvalidManifestError
from frazil.format.manifests import Content
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.planning.deletes.runs import Integers
from frazil.planning.frames import partition_keys
from frazil.planning.prune.ranges import column_or_nulls
from frazil.storage.avro.columns import value_column
from frazil.storage.avro.manifest_layout import PARTITION_PREFIX

FILE_PATH_ID: Final = 2147483546
"""The field id of `file_path` in position delete files (rule 224)."""
PATH_BOUNDS: Final = {"lower_bounds": {FILE_PATH_ID}, "upper_bounds": {FILE_PATH_ID}}
"""The bounds of these paths, as statistics to read."""
NO_SCOPE: Final = 0


class Rule(Enum):
    """What the deletes of a data file must not be."""

    NO_DATA_FILE = "no data file"
    TWO_VECTORS = "two vectors"
    OTHER_PARTITION = "other partition"
    BESIDE_A_VECTOR = "beside a vector"
    NO_EQUALITY_IDS = "no equality ids"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A delete file that breaks a rule together with others.

    Attributes:
        row: of the frame of delete files.
        reason: what is wrong, with the names of the files.
    """

    row: int
    rule: Rule
    reason: str


@dataclass(frozen=True, slots=True)
class OwnDeletes:
    """Which delete files are about one data file.

    Attributes:
        about: by row, the path of that data file; null for deletes of several.
        position: the rows of position deletes.
        vector: the rows of deletion vectors, which are among them.
    """

    about: pl.Series
    position: npt.NDArray[np.bool_]
    vector: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, deletes: pl.DataFrame) -> OwnDeletes:
        """Look at delete files: with `content`, `file_format` and what names data files."""
        position = (deletes["content"] == int(Content.POSITION_DELETES)).to_numpy()
        vector = position & (deletes["file_format"] == "puffin").to_numpy()
        return cls(referenced_data_files(deletes), position, vector)

    @property
    def own_rows(self) -> npt.NDArray[np.bool_]:
        """The rows of position deletes of one data file."""
        return np.asarray(self.position & self.about.is_not_null().to_numpy())

    def of_vectors(self, deletes: pl.DataFrame) -> Iterator[Contradiction]:
        """Vectors that name no data file (rule 123), and several of one data file (rule 217)."""
        rows = pl.Series(np.flatnonzero(self.vector))
        named = pl.DataFrame(
            {"row": rows, "path": deletes["file_path"][rows], "about": self.about[rows]}
        )
        for row in named.filter(pl.col("about").is_null())["row"]:
            yield Contradiction(
                row, Rule.NO_DATA_FILE, "a deletion vector has no referenced_data_file"
            )
        known = named.drop_nulls("about").filter(pl.col("about").is_duplicated())
        for (about,), twice in known.group_by("about", maintain_order=True):
            first, second = twice["path"].head(2)
            for row in twice["row"]:
                yield Contradiction(
                    row,
                    Rule.TWO_VECTORS,
                    f"the data file {about} has two deletion vectors, in {first} and in {second}; "
                    "at most one is allowed",
                )

    def beside_vectors(self, pairs: tuple[Integers, Integers]) -> Iterator[Contradiction]:
        """Position delete files of one data file that has a vector: readers ignore them (222).

        Args:
            pairs: rows of data files and of their deletes.
        """
        rows, files = pairs
        beside = np.isin(rows, rows[self.vector[files]]) & ~self.vector[files]
        for row in map(int, np.unique(files[beside])):
            yield Contradiction(
                row,
                Rule.BESIDE_A_VECTOR,
                f"the data file {self.about[row]} has a deletion vector, beside which readers "
                "ignore this file",
            )


def lacks_equality_ids(deletes: pl.DataFrame) -> pl.Series:
    """Whether each delete file is one of keys that does not say which columns they are of (121)."""
    is_equality = deletes["content"] == int(Content.EQUALITY_DELETES)
    return is_equality & (deletes["equality_ids"].list.len().fill_null(0) == 0)


def refuse(found: Iterable[Contradiction], deletes: pl.DataFrame) -> None:
    """Raise InvalidManifestError for the first contradiction, if there is one."""
    for each in found:
        is_alone = each.rule is Rule.NO_DATA_FILE
        file = deletes["file_path"][each.row] if is_alone else None
        raise InvalidManifestError(each.reason, file=file)


def of_partitions(
    data: pl.DataFrame, deletes: pl.DataFrame, pairs: tuple[Integers, Integers]
) -> Iterator[Contradiction]:
    """Deletes of a data file whose partition is another one (rule 182).

    Args:
        pairs: rows of the data files and of their deletes.
    """
    for row, file in zip(*pairs, strict=True):
        yield Contradiction(
            int(file),
            Rule.OTHER_PARTITION,
            f"the delete file {deletes['file_path'][int(file)]} is for the data file "
            f"{data['file_path'][int(row)]}, but their partitions differ",
        )


def pairs_by_path(
    data: pl.DataFrame, deletes: pl.DataFrame, about: pl.Series, which: Integers
) -> tuple[Integers, Integers]:
    """Deletes of one data file, by its path; not newer than the deletes (rules 176, 177)."""
    names = pl.DataFrame({"file_path": about.gather(which), "delete": which})
    paths = data.select("file_path").with_row_index("row")
    joined = paths.join(names, on="file_path")
    rows = joined["row"].cast(pl.Int64).to_numpy()
    files = joined["delete"].cast(pl.Int64).to_numpy()
    numbers = (each["sequence_number"].to_numpy() for each in (data, deletes))
    keep = next(numbers)[rows] <= next(numbers)[files]
    return rows[keep], files[keep]


def contradictions(
    data: pl.DataFrame, deletes: pl.DataFrame, specs: Mapping[int, PartitionSpec]
) -> list[Contradiction]:
    """All that the deletes of a snapshot say against each other or against their data files.

    Args:
        data: live data files, those at least that deletes are about.
        deletes: live delete files, with the bounds of `file_path`.
        specs: every partition spec of the table, by id.
    """
    if deletes.is_empty():
        return []
    found = OwnDeletes.of(deletes)
    rows, files = pairs_by_path(data, deletes, found.about, np.flatnonzero(found.own_rows))
    data_scope, delete_scope = scopes(data, deletes, specs)
    apart = data_scope[rows] != delete_scope[files]
    without_ids = (int(row) for row in lacks_equality_ids(deletes).arg_true())
    return [
        *found.of_vectors(deletes),
        *found.beside_vectors((rows, files)),
        *of_partitions(data, deletes, (rows[apart], files[apart])),
        *(
            Contradiction(row, Rule.NO_EQUALITY_IDS, "an equality delete file has no equality ids")
            for row in without_ids
        ),
    ]


def referenced_data_files(deletes: pl.DataFrame) -> pl.Series:
    """Return the one data file that each position delete is about: stated, or both bounds.

    It is null for deletes of several data files (rule 308).

    Args:
        deletes: with `referenced_data_file` and the bounds of `file_path`.
    """
    lower, upper = (path_bound(deletes, name) for name in ("lower_bounds", "upper_bounds"))
    stated = deletes["referenced_data_file"]
    derived = lower.set((lower != upper).fill_null(True), None)
    return stated.zip_with(stated.is_not_null(), derived.cast(pl.String))


def path_bound(deletes: pl.DataFrame, statistic: str) -> pl.Series:
    """A bound of the paths in each delete file; null where it is not known."""
    return column_or_nulls(deletes, value_column(statistic, FILE_PATH_ID), pl.Binary())


def scopes(
    data: pl.DataFrame, deletes: pl.DataFrame, specs: Mapping[int, PartitionSpec]
) -> tuple[Integers, Integers]:
    """A number for each (spec, partition): equal exactly where both are equal.

    Data files of partitions without deletes share one number.
    """
    data_scope = np.full(len(data), NO_SCOPE, dtype=np.int64)
    delete_scope = np.full(len(deletes), NO_SCOPE, dtype=np.int64)
    following = NO_SCOPE + 1
    for (spec_id,), rows in deletes.with_row_index("row").group_by("spec_id"):
        spec = specs.get(int(str(spec_id)))
        columns = [f"{PARTITION_PREFIX}{field.field_id}" for field in spec.fields] if spec else []
        keys = _partition_keys(rows, columns)
        distinct = keys.unique().with_row_index("scope", offset=following)
        following += len(distinct)
        delete_scope[rows["row"].to_numpy()] = _numbers_of(keys, distinct)
        same = np.flatnonzero((data["spec_id"] == spec_id).to_numpy())
        # Frames have the partition columns of the specs that some file in them is of.
        if len(same):
            data_scope[same] = _numbers_of(_partition_keys(data[same], columns), distinct)
    return data_scope, delete_scope


def _partition_keys(files: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    keys = [
        partition_keys(files[name]) if name in files.columns else pl.lit(None).alias(name)
        for name in columns
    ]
    return files.select(pl.lit(0).alias("all"), *keys)


def _numbers_of(keys: pl.DataFrame, distinct: pl.DataFrame) -> Integers:
    joined = keys.join(
        distinct, on=keys.columns, how="left", nulls_equal=True, maintain_order="left"
    )
    return joined["scope"].cast(pl.Int64).fill_null(NO_SCOPE).to_numpy()
