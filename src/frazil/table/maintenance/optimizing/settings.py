"""When a table is optimized, and towards what: the properties `self-optimizing.*`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from frazil.format.properties.table import (
    OPTIMIZING_DELETED_RATIO,
    OPTIMIZING_ENABLED,
    OPTIMIZING_FILE_COUNT,
    OPTIMIZING_FILTER,
    OPTIMIZING_FRAGMENT_RATIO,
    OPTIMIZING_FULL_ALL,
    OPTIMIZING_FULL_INTERVAL,
    OPTIMIZING_MAX_FILES,
    OPTIMIZING_MAX_TASK_SIZE,
    OPTIMIZING_MIN_TARGET_RATIO,
    OPTIMIZING_MINOR_INTERVAL,
    OPTIMIZING_PLAN_INTERVAL,
    OPTIMIZING_TARGET_SIZE,
    TARGET_FILE_SIZE,
)

_USUAL_TARGET: Final = 128 << 20
_RATIO_OF_FILES: Final = 0.1
_RATIO_OF_VECTORS: Final = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizingSettings:
    """Thresholds and triggers of self-optimizing, sizes in bytes and times in milliseconds.

    Attributes:
        is_enabled: whether a schedule optimizes the table; a call always does.
        target_size: of data files.
        fragment_size: files up to this size are fragments.
        smallest_size: fragments and files below this size are undersized.
        file_count: the fragments and equality deletes of a partition that are worth a minor run.
        minor_interval: so long a fragment or an equality delete may wait for others.
        deleted_ratio: a file of whose rows a larger share is deleted by position delete files is
            rewritten.
        vector_ratio: the same of deletion vectors, which cost a read much less.
        full_interval: partitions with a file older than this are rewritten; -1 for never.
        full_rewrites_all: whether such a run takes the partition's good files too.
        plan_interval: the least time between two runs of a schedule.
        max_files: the most data files that one round rewrites.
        max_task_size: the most bytes that are rewritten together, never less than `target_size`;
            None for no limit.
        filter: SQL text: only files that may hold rows of which it is true are looked at.
    """

    is_enabled: bool
    target_size: int
    fragment_size: int
    smallest_size: int
    file_count: int
    minor_interval: int
    deleted_ratio: float
    vector_ratio: float
    full_interval: int
    full_rewrites_all: bool
    plan_interval: int
    max_files: int
    max_task_size: int | None
    filter: str | None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """Return those that a table's properties say.

        Raises:
            ConfigurationError: a property is malformed.
        """
        target = OPTIMIZING_TARGET_SIZE.of(properties)
        if target is None:
            target = min(_USUAL_TARGET, TARGET_FILE_SIZE.of(properties))
        ratio = OPTIMIZING_DELETED_RATIO.of(properties)
        task = OPTIMIZING_MAX_TASK_SIZE.of(properties)
        return cls(
            is_enabled=OPTIMIZING_ENABLED.of(properties),
            target_size=target,
            fragment_size=target // OPTIMIZING_FRAGMENT_RATIO.of(properties),
            smallest_size=int(target * OPTIMIZING_MIN_TARGET_RATIO.of(properties)),
            file_count=OPTIMIZING_FILE_COUNT.of(properties),
            minor_interval=OPTIMIZING_MINOR_INTERVAL.of(properties),
            deleted_ratio=_RATIO_OF_FILES if ratio is None else ratio,
            vector_ratio=_RATIO_OF_VECTORS if ratio is None else ratio,
            full_interval=OPTIMIZING_FULL_INTERVAL.of(properties),
            full_rewrites_all=OPTIMIZING_FULL_ALL.of(properties),
            plan_interval=OPTIMIZING_PLAN_INTERVAL.of(properties),
            max_files=OPTIMIZING_MAX_FILES.of(properties),
            max_task_size=None if task is None else max(task, target),
            filter=OPTIMIZING_FILTER.of(properties),
        )
