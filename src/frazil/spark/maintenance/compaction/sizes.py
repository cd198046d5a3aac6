"""How large files should be, which are worth rewriting, and how many come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from frazil.errors import ConfigurationError

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

    def packed(self, sizes: npt.NDArray[np.int64]) -> list[slice]:
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
