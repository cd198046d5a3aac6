"""What a compaction is asked for: keywords, or the options of Java's `rewrite_data_files`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypedDict

import numpy as np
import numpy.typing as npt

from frazil.errors import ConfigurationError, UnsupportedError
from frazil.format.metadata import TableMetadata
from frazil.format.properties.kinds import (
    FLAG,
    INT_MAX,
    LONG_MAX,
    Kind,
    Property,
    one_of,
    optional,
    value_of,
    whole_number,
)
from frazil.format.properties.table import DELETE_TARGET_FILE_SIZE, TARGET_FILE_SIZE

_GIBIBYTE: Final = 1 << 30
_BYTES: Final = whole_number("bytes", smallest=1, largest=LONG_MAX)
_COUNT: Final = whole_number(smallest=1)


def _number_above_zero(text: str, *, at_most: float) -> float:
    number = float(text)
    if not 0 < number <= at_most:
        raise ValueError(text)
    return number


TARGET_SIZE: Final[Property[int | None]] = Property(
    "target-file-size-bytes", optional(_BYTES), None
)
SMALLEST: Final[Property[int | None]] = Property(
    "min-file-size-bytes", optional(whole_number("bytes", largest=LONG_MAX)), None
)
LARGEST: Final[Property[int | None]] = Property("max-file-size-bytes", optional(_BYTES), None)
MIN_INPUT_FILES: Final = Property("min-input-files", _COUNT, 5)
GROUP_SIZE: Final = Property("max-file-group-size-bytes", _BYTES, 100 * _GIBIBYTE)
GROUP_FILES: Final[Property[int | None]] = Property(
    "max-file-group-input-files", optional(whole_number(smallest=1, largest=LONG_MAX)), None
)
REWRITE_ALL: Final = Property("rewrite-all", FLAG, default=False)
CONCURRENT_GROUPS: Final = Property("max-concurrent-file-group-rewrites", _COUNT, 5)
PARTIAL_PROGRESS: Final = Property("partial-progress.enabled", FLAG, default=False)
MAX_COMMITS: Final = Property("partial-progress.max-commits", _COUNT, 10)
MAX_FAILED_COMMITS: Final[Property[int | None]] = Property(
    "partial-progress.max-failed-commits", optional(whole_number()), None
)
JOB_ORDER: Final = Property(
    "rewrite-job-order",
    one_of("none", "bytes-asc", "bytes-desc", "files-asc", "files-desc"),
    "none",
)
DELETE_FILES: Final = Property("delete-file-threshold", _COUNT, INT_MAX)
DELETE_RATIO: Final = Property(
    "delete-ratio-threshold",
    Kind("a number above 0 and up to 1", partial(_number_above_zero, at_most=1)),
    0.3,
)
STARTING_SEQUENCE: Final = Property("use-starting-sequence-number", FLAG, default=True)
DANGLING: Final = Property("remove-dangling-deletes", FLAG, default=False)
OUTPUT_SPEC: Final[Property[int | None]] = Property(
    "output-spec-id", optional(whole_number()), None
)
MAX_FILES: Final[Property[int | None]] = Property("max-files-to-rewrite", optional(_COUNT), None)
COMPRESSION_FACTOR: Final = Property(
    "compression-factor",
    Kind("a number above 0", partial(_number_above_zero, at_most=sys.float_info.max)),
    1.0,
)
SHUFFLES_PER_FILE: Final = Property("shuffle-partitions-per-file", _COUNT, 1)
TEXT_BYTES: Final = Property("var-length-contribution", _COUNT, 8)
PLACE_BYTES: Final = Property("max-output-size", _COUNT, INT_MAX)

_OF_SIZES: Final = (
    TARGET_SIZE, SMALLEST, LARGEST, MIN_INPUT_FILES, GROUP_SIZE, GROUP_FILES, REWRITE_ALL,
    CONCURRENT_GROUPS, PARTIAL_PROGRESS, MAX_COMMITS, MAX_FAILED_COMMITS, JOB_ORDER,
)  # fmt: skip
_OF_DATA_FILES: Final = (
    *_OF_SIZES, DELETE_FILES, DELETE_RATIO, STARTING_SEQUENCE, DANGLING, OUTPUT_SPEC, MAX_FILES,
    COMPRESSION_FACTOR, SHUFFLES_PER_FILE, TEXT_BYTES, PLACE_BYTES,
)  # fmt: skip


class RewriteSettings(TypedDict, total=False):
    """Keywords of every rewrite of files, sizes in bytes.

    Attributes:
        target_file_size_bytes: of new files; the table's property unless given.
        min_file_size_bytes, max_file_size_bytes: smaller and larger files are rewritten; 75 % and
            180 % of the target unless given.
        min_input_files: this many files together are worth a rewrite, whatever their bytes.
        max_file_group_size_bytes, max_file_group_input_files: of one group, which one job rewrites.
        rewrite_all: rewrite every file, whatever its size.
        max_concurrent_file_group_rewrites: how many groups are rewritten beside each other.
        partial_progress_enabled: commit finished groups while others are still rewritten.
        partial_progress_max_commits: in how many commits.
        partial_progress_max_failed_commits: how many of them may fail; all unless given.
        rewrite_job_order: which groups come first: ``none``, ``bytes-asc``, ``bytes-desc``,
            ``files-asc`` or ``files-desc``.
    """

    target_file_size_bytes: int
    min_file_size_bytes: int
    max_file_size_bytes: int
    min_input_files: int
    max_file_group_size_bytes: int
    max_file_group_input_files: int
    rewrite_all: bool
    max_concurrent_file_group_rewrites: int
    partial_progress_enabled: bool
    partial_progress_max_commits: int
    partial_progress_max_failed_commits: int
    rewrite_job_order: str


class CompactionSettings(RewriteSettings, total=False):
    """Keywords of a compaction, beside those of every rewrite.

    Attributes:
        delete_file_threshold: a data file with this many delete files is rewritten.
        delete_ratio_threshold: a data file of whose rows this share is deleted is rewritten.
        use_starting_sequence_number: new files count as as old as what was read, so that equality
            deletes that arrive meanwhile reach them.
        remove_dangling_deletes: remove delete files that apply to nothing afterwards.
        output_spec_id: the partition spec of new files; the current one unless given.
        max_files_to_rewrite: the most files that are rewritten.
        compression_factor: by how much a sorted file is smaller or larger than what it is made of.
        shuffle_partitions_per_file: always 1 here.
        var_length_contribution: the bytes of text that count for a curve, at most 6.
        max_output_size: the bytes of a place on a curve that count; there are 2 at most.
    """

    delete_file_threshold: int
    delete_ratio_threshold: float
    use_starting_sequence_number: bool
    remove_dangling_deletes: bool
    output_spec_id: int
    max_files_to_rewrite: int
    compression_factor: float
    shuffle_partitions_per_file: int
    var_length_contribution: int
    max_output_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteOptions:
    """How files are chosen, rewritten and committed.

    Attributes:
        sizes: of files and groups.
        rewrites_all: whether files of a good size are rewritten too.
        concurrent_groups: how many groups are rewritten beside each other.
        partial_commits: in how many commits finished groups become part of the table; None for one
            commit at the end.
        max_failed_commits: how many of those may fail.
        job_order: which groups come first.
    """

    sizes: FileSizes
    rewrites_all: bool
    concurrent_groups: int
    partial_commits: int | None
    max_failed_commits: int
    job_order: str

    @classmethod
    def of_deletes(
        cls,
        metadata: TableMetadata,
        options: Mapping[str, str] | None,
        settings: RewriteSettings | None = None,
    ) -> RewriteOptions:
        """Return those of a rewrite of delete files.

        Raises:
            ConfigurationError: an option is unknown, malformed or given twice.
        """
        texts = _texts(options, settings or {}, _OF_SIZES)
        return cls(**_common(texts, DELETE_TARGET_FILE_SIZE.of(metadata.properties)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOptions(RewriteOptions):
    """How data files are chosen, rewritten and committed.

    Attributes:
        delete_files: a file with this many delete files is rewritten.
        delete_ratio: a file of whose rows this share is deleted is rewritten.
        keeps_sequence_number: whether new files count as as old as what was read.
        removes_dangling: whether delete files that apply to nothing are removed afterwards.
        spec_id: the partition spec of new files.
        max_files: the most files that are rewritten.
        compression_factor: of sorted files.
        text_bytes: the bytes of text that count for a curve.
        place_bytes: the bytes of a place on a curve that count.
    """

    delete_files: int
    delete_ratio: float
    keeps_sequence_number: bool
    removes_dangling: bool
    spec_id: int
    max_files: int | None
    compression_factor: float
    text_bytes: int
    place_bytes: int

    @classmethod
    def of(
        cls,
        metadata: TableMetadata,
        options: Mapping[str, str] | None,
        settings: CompactionSettings | None = None,
    ) -> CompactionOptions:
        """Return what options and keywords say.

        Raises:
            ConfigurationError: an option is unknown, malformed or given twice.
            InvalidMetadataError: the table has no such spec.
            UnsupportedError: several shuffle partitions a file.
        """
        texts = _texts(options, settings or {}, _OF_DATA_FILES)
        if SHUFFLES_PER_FILE.of(texts) > 1:
            raise UnsupportedError(
                f"{SHUFFLES_PER_FILE.name} is {texts[SHUFFLES_PER_FILE.name]}: a file is sorted by "
                "one task here; leave the option out, or ask for smaller files"
            )
        spec_id = OUTPUT_SPEC.of(texts)
        spec = metadata.spec if spec_id is None else metadata.spec_by_id(spec_id)
        return cls(
            **_common(texts, TARGET_FILE_SIZE.of(metadata.properties)),
            delete_files=DELETE_FILES.of(texts),
            delete_ratio=DELETE_RATIO.of(texts),
            keeps_sequence_number=STARTING_SEQUENCE.of(texts),
            removes_dangling=DANGLING.of(texts),
            spec_id=spec.spec_id,
            max_files=MAX_FILES.of(texts),
            compression_factor=COMPRESSION_FACTOR.of(texts),
            text_bytes=TEXT_BYTES.of(texts),
            place_bytes=PLACE_BYTES.of(texts),
        )


def _common(texts: Mapping[str, str], target: int) -> dict[str, Any]:
    """The fields of `RewriteOptions`."""
    commits = MAX_COMMITS.of(texts)
    most_failed = MAX_FAILED_COMMITS.of(texts)
    return {
        "sizes": FileSizes.of(
            TARGET_SIZE.of(texts) or target,
            smallest=SMALLEST.of(texts),
            largest=LARGEST.of(texts),
            most_in_group=GROUP_SIZE.of(texts),
            min_input_files=MIN_INPUT_FILES.of(texts),
            most_input_files=GROUP_FILES.of(texts),
        ),
        "rewrites_all": REWRITE_ALL.of(texts),
        "concurrent_groups": CONCURRENT_GROUPS.of(texts),
        "partial_commits": commits if PARTIAL_PROGRESS.of(texts) else None,
        "max_failed_commits": commits if most_failed is None else most_failed,
        "job_order": JOB_ORDER.of(texts),
    }


def _texts(
    options: Mapping[str, str] | None,
    settings: Mapping[str, Any],
    known: tuple[Property[Any], ...],
) -> dict[str, str]:
    """Options and keywords by Java's names, checked."""
    by_keyword = {_keyword(each.name): each for each in known}
    by_name = {each.name: each for each in known}
    found: dict[str, str] = {}
    for keyword, value in settings.items():
        if keyword not in by_keyword:
            raise ConfigurationError(
                f"{keyword} is no setting of this rewrite; there are {', '.join(by_keyword)}"
            )
        if value is not None:
            found[by_keyword[keyword].name] = str(value)
    for name, value in (options or {}).items():
        if name not in by_name:
            raise ConfigurationError(
                f"{name!r} is no option of this rewrite; there are {', '.join(by_name)}"
            )
        if name in found:
            raise ConfigurationError(
                f"{name} is given as an option and as the keyword {_keyword(name)}: give it once"
            )
        found[name] = str(value)
    for name, text in found.items():
        value_of(by_name[name].kind, name, text)
    return found


def _keyword(name: str) -> str:
    return name.replace("-", "_").replace(".", "_")


SMALLEST_SHARE: Final = 0.75
LARGEST_SHARE: Final = 1.8
_MOST_OVER_TARGET: Final = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizes:
    """The sizes that a rewrite works towards, in bytes.

    Attributes:
        target: of new files.
        smallest: smaller files are rewritten.
        largest: larger files are rewritten.
        most_in_group: one group of files has at most so many bytes.
        min_input_files: so many files together are worth a rewrite, whatever their bytes.
        most_input_files: one group has at most so many files; None for no limit.
    """

    target: int
    smallest: int
    largest: int
    most_in_group: int
    min_input_files: int
    most_input_files: int | None = None

    def __post_init__(self) -> None:
        if not self.smallest < self.target < self.largest:
            raise ConfigurationError(
                "target-file-size-bytes has to lie between min-file-size-bytes and "
                f"max-file-size-bytes, but they are {self.target}, {self.smallest} and "
                f"{self.largest}"
            )

    @classmethod
    def of(
        cls,
        target: int,
        *,
        smallest: int | None = None,
        largest: int | None = None,
        most_in_group: int,
        min_input_files: int,
        most_input_files: int | None = None,
    ) -> FileSizes:
        """Return sizes; 75 % and 180 % of the target are the smallest and the largest unless given.

        Raises:
            ConfigurationError: they contradict each other.
        """
        return cls(
            target=target,
            smallest=int(target * SMALLEST_SHARE) if smallest is None else smallest,
            largest=int(target * LARGEST_SHARE) if largest is None else largest,
            most_in_group=most_in_group,
            min_input_files=min_input_files,
            most_input_files=most_input_files,
        )

    @property
    def most_written(self) -> int:
        """The size at which a new file is closed: a little over the target leaves no crumbs."""
        return self.target + (self.largest - self.target) // 2

    def output_files(self, size: int) -> int:
        """Return how many files so many bytes should become."""
        if size < self.target:
            return 1
        whole, rest = divmod(size, self.target)
        if not rest:
            return whole
        if rest > self.smallest:
            return whole + 1
        average = size // whole
        fits = average < min(_MOST_OVER_TARGET * self.target, self.most_written)
        return whole if fits else whole + 1

    def is_worth_it(self, files: int, size: int) -> bool:
        """Return whether a group of so many files and bytes is worth a rewrite by its sizes."""
        return (
            (files > 1 and files >= self.min_input_files)
            or (files > 1 and size > self.target)
            or size > self.largest
        )

    def group_slices(self, sizes: npt.NDArray[np.int64]) -> list[slice]:
        """Return runs of neighbours, each of as many bytes and files as one group may have."""
        ends = np.cumsum(sizes)
        runs: list[slice] = []
        start = 0
        while start < len(sizes):
            before = int(ends[start - 1]) if start else 0
            end = int(np.searchsorted(ends, before + self.most_in_group, side="right"))
            if self.most_input_files is not None:
                end = min(end, start + self.most_input_files)
            end = max(end, start + 1)
            runs.append(slice(start, end))
            start = end
        return runs
