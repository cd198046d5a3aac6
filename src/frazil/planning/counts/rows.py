"""How many rows a snapshot has: by its manifest list, by the entries of manifests, or by a scan.

A manifest list states how many rows the live files of each manifest have (rules 162, 165). That is
the number of live rows where

- all counts are there, as they have to be from version 2 on;
- every live file was added by a commit of version 2 or later. Older releases of the Java library
  gave Avro files that they added to a table of version 1 a record count of -1, which the sum hides;
- no delete reaches a file of the manifest, which its numbers tell: a delete applies to files whose
  data sequence number is at most its own (rules 176-178), a manifest's deletes are at most as new
  as the manifest, and the list states the smallest number of each manifest's live files (rule 166);
- the snapshot's own total, which writers keep in another way, is the same.

The entries of all other manifests are looked at, some manifests at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.predicates.expressions import AlwaysTrue, Expression
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.planning.aggregates import Measure, answer
from frazil.planning.load import FILES_AT_ONCE, batches_of_files, listed_manifests
from frazil.planning.plan import plan
from frazil.planning.prune import may_match_manifests
from frazil.planning.scan_plan import ScanPlan
from frazil.storage.files import FileIO


@dataclass(frozen=True, slots=True)
class CountedRows:
    """What metadata tells of the number of rows that match.

    Attributes:
        known: the rows of files that have been counted.
        rest: the files whose rows have to be read; None where there are none.
    """

    known: int
    rest: ScanPlan | None


def count_rows(
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    io: FileIO,
    *,
    where: Expression,
    schema: Schema,
    whole_plan: Callable[[], ScanPlan],
    files_at_once: int = FILES_AT_ONCE,
) -> CountedRows:
    """Count the rows of a snapshot that match a predicate, as far as metadata tells.

    Args:
        snapshot: what to count; None has no rows.
        where: bound to `schema`; AlwaysTrue counts all rows.
        schema: the schema to read by.
        whole_plan: gives the plan of `where`, for files that are few enough to be planned at once.
        files_at_once: the entries of about so many files are in memory at once.

    Raises:
        InvalidManifestError, MissingFileError, StorageError: a file cannot be read.
    """
    if snapshot is None:
        return CountedRows(0, None)
    specs = metadata.partition_specs
    live = [each for each in listed_manifests(io, snapshot) if each.has_live_files]
    data = [each for each in live if each.content is ManifestContent.DATA]
    deletes = [each for each in live if each.content is ManifestContent.DELETES]
    may = may_match_manifests(where, data, metadata.specs_by_id, schema)
    stated: list[int | None] = [None] * len(data)
    if isinstance(where, AlwaysTrue):
        stated = _stated_rows(data, deletes, snapshot)
    known = sum(rows for rows in stated if rows is not None)
    opened = [
        each for each, rows, kept in zip(data, stated, may, strict=True) if kept and rows is None
    ]
    batches = list(batches_of_files(opened, files_at_once))
    if len(opened) == len(data) and len(batches) < 2:
        return count_planned(whole_plan(), schema=schema, specs=specs)

    def count_part(some: Sequence[ManifestFile]) -> CountedRows:
        """The rows of the files of some manifests."""
        planned = plan(
            metadata, snapshot, io, where=where, schema=schema, manifests=[*some, *deletes]
        )
        return count_planned(planned, schema=schema, specs=specs)

    unanswered: list[ManifestFile] = []
    rest: ScanPlan | None = None
    for batch in batches:
        found = count_part(batch)
        known += found.known
        if found.rest is not None:
            rest = found.rest
            places = rest.files["manifest"].unique()
            paths = {rest.manifests[place] for place in places}
            unanswered += [each for each in batch if each.manifest_path in paths]
    if len(batches) > 1 and unanswered:
        # One plan for a scan of all: only manifests with such files are planned again.
        rest = count_part(unanswered).rest
    return CountedRows(known, rest)


def count_planned(
    planned: ScanPlan, *, schema: Schema, specs: Sequence[PartitionSpec]
) -> CountedRows:
    """Count the rows of a plan that metadata tells; `specs` are all of the table's."""
    found = answer(planned, [Measure("count", None, "rows")], (), schema=schema, specs=specs)
    rest = found.rest_of(planned) if len(found.scanned) else None
    return CountedRows(int(found.partial["measure0"][0]), rest)


def _stated_rows(
    data: Sequence[ManifestFile], deletes: Sequence[ManifestFile], snapshot: Snapshot
) -> list[int | None]:
    """The live rows of each manifest that the list tells for certain, None for the others."""
    rows = [_rows_in_list(manifest) for manifest in data]
    total = (snapshot.summary or {}).get("total-records")
    if total is not None and None not in rows and total != str(sum(filter(None, rows))):
        return [None] * len(data)
    newest_delete = max((each.sequence_number for each in deletes), default=0)
    return [
        count if each.min_sequence_number > newest_delete else None
        for each, count in zip(data, rows, strict=True)
    ]


def _rows_in_list(manifest: ManifestFile) -> int | None:
    """The rows of the live files of a manifest as its list states them."""
    added, existing = manifest.added_rows_count, manifest.existing_rows_count
    if added is None or existing is None or added < 0 or existing < 0:
        return None
    return added + existing
