"""Large plans: executors test a predicate on manifests, the driver gets the files that are kept."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import polars as pl
from pyspark.sql import SparkSession

from frazil.errors import InvalidManifestError
from frazil.format.manifests import ManifestFile
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.format.schema import Schema
from frazil.planning.cache import ManifestCache
from frazil.planning.frames import with_single_values
from frazil.planning.load import ManifestLoader
from frazil.planning.plan import KeptFiles, Pruner, files_of_manifests
from frazil.planning.scan_plan import Skipped, SkipReason
from frazil.spark.session import costs
from frazil.spark.session.facts import has_many_cores
from frazil.spark.session.tasks import Wire, work_on
from frazil.storage.files import FileIO

_Part: TypeAlias = tuple[int, tuple[ManifestFile, ...]]
"""Neighbouring manifests, and the place of the first."""


@dataclass(frozen=True, slots=True)
class ExecutorPruning:
    """Prunes the files of large plans by executors; the same files as the driver would keep.

    Attributes:
        spark: the session.
    """

    spark: SparkSession

    def __call__(
        self,
        loader: ManifestLoader,
        pruner: Pruner,
        manifests: Sequence[ManifestFile],
        *,
        statistics: Mapping[str, Collection[int]],
        columns: Collection[str],
    ) -> list[KeptFiles] | None:
        """What a predicate leaves of parts of the manifests, in their order.

        None where the driver does it itself: without a predicate all files come to it anyway, few
        manifests cost less than a job, and executors on its own cores gain nothing.
        """
        units = sum(each.manifest_length for each in manifests)
        is_small = isinstance(pruner.bound, AlwaysTrue) or units <= costs.PRUNED.here
        if is_small or not has_many_cores(self.spark, costs.PRUNING_CORES):
            return None
        work = partial(
            _prune,
            loader.io,
            loader.specs,
            loader.schema,
            pruner,
            {name: frozenset(ids) for name, ids in statistics.items()},
            tuple(columns),
        )
        return work_on(
            self.spark,
            _parts(manifests),
            work,
            Wire(_to_text, _from_text),
            cost=costs.PRUNED,
            units=units,
            otherwise=InvalidManifestError,
        )


def _parts(manifests: Sequence[ManifestFile]) -> list[_Part]:
    """The manifests in parts that a task may take one or several of."""
    found: list[_Part] = []
    members: list[ManifestFile] = []
    size = 0
    for place, manifest in enumerate(manifests):
        # The summaries have been looked at.
        members.append(replace(manifest, partitions=None))
        size += manifest.manifest_length
        if size >= costs.PRUNED.a_task // 4 or place == len(manifests) - 1:
            found.append((place + 1 - len(members), tuple(members)))
            members, size = [], 0
    return found


def _prune(
    files: FileIO,
    specs: Mapping[int, PartitionSpec],
    schema: Schema,
    pruner: Pruner,
    statistics: Mapping[str, Collection[int]],
    columns: Collection[str],
    part: _Part,
) -> KeptFiles:
    first, manifests = part
    loader = ManifestLoader(files, specs, schema, ManifestCache(0))
    return files_of_manifests(
        loader, pruner, manifests, statistics=statistics, columns=columns, first=first
    )


def _to_text(kept: KeptFiles) -> str:
    packed = io.BytesIO()
    kept.files.write_ipc(packed, compression="zstd")
    skipped = [(each.reason, each.files, each.size_in_bytes) for each in kept.skipped]
    return json.dumps([skipped, base64.b64encode(packed.getbuffer()).decode()])


def _from_text(text: str) -> KeptFiles:
    skipped, packed = json.loads(text)
    files = pl.read_ipc(io.BytesIO(base64.b64decode(packed)))
    return KeptFiles(
        with_single_values(files),
        tuple(Skipped(SkipReason(reason), 0, count, size) for reason, count, size in skipped),
    )
