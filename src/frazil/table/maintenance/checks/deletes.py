"""What the delete files of a snapshot say that no read accepts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.errors import UnsupportedError
from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.planning.deletes.own_files import (
    PATH_BOUNDS,
    contradictions,
    referenced_data_files,
)
from frazil.planning.frames import concat_entries, live_entries, no_entries, with_own_text
from frazil.planning.load import ManifestLoader
from frazil.storage.files import FileIO
from frazil.table.maintenance.checks.files import KINDS, PROBLEMS, VECTOR

IN_CURRENT: Final = "in_current_snapshot"
CHECKED: Final = {**PROBLEMS, IN_CURRENT: pl.Boolean()}
"""The columns of a check's frame."""
SCHEMAS_APART: Final = "partitions apart"
"""The problem of a snapshot whose partition specs give one id to fields of different types."""

_MANIFESTS_AT_ONCE: Final = 256


def check_deletes(
    io: FileIO,
    metadata: TableMetadata,
    listed: Mapping[int, Sequence[ManifestFile]],
    lost: Collection[str],
) -> pl.DataFrame:
    """Return what the deletes of each snapshot say against each other or their data files.

    Args:
        listed: the manifests of each snapshot, by its id.
        lost: paths of manifests that cannot be read.

    Returns:
        The columns of `CHECKED`, a row for each delete file and rule that it breaks.
    """
    readable = {
        snapshot_id: [m for m in each if m.has_live_files and m.manifest_path not in lost]
        for snapshot_id, each in listed.items()
    }
    entries = _Entries.of(io, metadata, [m for each in readable.values() for m in each])
    seen: dict[tuple[str, ...], list[tuple[object, ...]]] = {}
    rows: dict[tuple[object, ...], bool] = {}
    for snapshot_id, manifests in readable.items():
        paths = [m.manifest_path for m in manifests if m.manifest_path in entries]
        key = tuple(paths)
        if key not in seen:
            seen[key] = _find(
                metadata, entries, paths, str(metadata.snapshot_by_id(snapshot_id).manifest_list)
            )
        is_current = snapshot_id == metadata.current_snapshot_id
        for row in seen[key]:
            rows[row] = rows.get(row, False) or is_current
    told = [(*row, is_current) for row, is_current in rows.items()]
    return pl.DataFrame(told, schema=CHECKED, orient="row")


@dataclass(frozen=True, slots=True)
class _Entries:
    """Live entries by the path of their manifest: deletes, and the data files they are about."""

    deletes: Mapping[str, pl.DataFrame]
    data: Mapping[str, pl.DataFrame]

    @classmethod
    def of(cls, io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile]) -> _Entries:
        loader = ManifestLoader.of(metadata, io)
        distinct = {m.manifest_path: m for m in manifests}.values()
        of_deletes = [m for m in distinct if m.content is ManifestContent.DELETES]
        if not of_deletes:
            return cls({}, {})
        frames = map(live_entries, loader.entries(of_deletes, values=PATH_BOUNDS))
        deletes = {m.manifest_path: f for m, f in zip(of_deletes, frames, strict=True)}
        about = pl.concat([referenced_data_files(each) for each in deletes.values()]).unique()
        data: dict[str, pl.DataFrame] = {}
        of_data = [m for m in distinct if m.content is ManifestContent.DATA]
        for start in range(0, len(of_data), _MANIFESTS_AT_ONCE):
            some = of_data[start : start + _MANIFESTS_AT_ONCE]
            for manifest, frame in zip(some, loader.entries(some), strict=True):
                named = live_entries(frame).filter(pl.col("file_path").is_in(about.implode()))
                if len(named):
                    data[manifest.manifest_path] = with_own_text(named)
        return cls(deletes, data)

    def __contains__(self, path: str) -> bool:
        return path in self.deletes or path in self.data


def _find(
    metadata: TableMetadata, entries: _Entries, paths: Sequence[str], manifest_list: str
) -> list[tuple[object, ...]]:
    """The rows of `PROBLEMS` for the deletes of these manifests."""
    try:
        deletes = _concat_or_empty([entries.deletes[p] for p in paths if p in entries.deletes])
        data = _concat_or_empty([entries.data[p] for p in paths if p in entries.data])
    except UnsupportedError as error:
        return [(manifest_list, "manifest list", SCHEMAS_APART, None, None, None, str(error))]
    found = contradictions(data, deletes, metadata.specs_by_id)
    offsets, names = deletes["content_offset"], deletes["file_path"]
    formats, contents = deletes["file_format"], deletes["content"]
    return [
        (
            names[each.row],
            VECTOR if formats[each.row] == "puffin" else KINDS[contents[each.row]],
            each.rule.value,
            None,
            None,
            offsets[each.row],
            each.reason,
        )
        for each in found
    ]


def _concat_or_empty(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return concat_entries(frames) if frames else no_entries()
