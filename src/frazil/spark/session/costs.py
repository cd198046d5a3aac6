"""What work costs: up to how much of it is done beside the session, and what a task is worth.

A job of Spark's takes about a tenth of a second before its first row, and the first Python on an
executor a second. "Measured" names the command; all other figures are chosen. Read them from this
module at each use: a test or a bench that changes one changes it for everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_TASKS: Final = 64
"""Work of items that are worth tasks has so many at most. Chosen."""


@dataclass(frozen=True, slots=True)
class Cost:
    """How one kind of work is spread, in units that the caller counts.

    Attributes:
        here: up to so many units are worked on beside the session.
        a_task: so many units are worth a task.
        threads: so many items are worked on beside each other in the driver's process.
    """

    here: int
    a_task: int
    threads: int

    def tasks(self, units: int) -> int:
        """Return how many tasks so many units are worth."""
        return min(units // self.a_task + 1, MOST_TASKS)


# -- footers of data files ----

REMOTE_FOOTERS: Final = Cost(here=128, a_task=32, threads=8)
"""Units: files of a store, each some requests that threads wait for. Chosen."""

LOCAL_FOOTERS: Final = Cost(here=30_000, a_task=10_000, threads=1)
"""Units: columns of files of a local disk, which take a second here. Reading them is work of
Python's, which threads do not share. Measured: ``make bench ONLY=small``."""

COLUMNS_OF_A_FOOTER: Final = 5
"""A footer costs as much as so many columns, beside its own. Measured as `LOCAL_FOOTERS`."""

LABELLED: Final = 8
"""A footer that ids and types are put into costs so many times as much. Measured likewise."""

# -- manifests ----

DECODED_BYTES: Final = 16 << 20
DECODED_MANIFESTS: Final = 1_000
"""Manifests of up to this size together, and so many, are shown from here. Chosen."""

LISTED_SNAPSHOTS: Final = 100
"""The manifest lists of up to so many snapshots are read here. Chosen."""

PLANNED_BYTES: Final = 256 << 20
"""Of manifests of up to this size a few columns are decoded here, as for a plan. Chosen."""

REWRITTEN_BYTES: Final = 64 << 20
"""Manifests of up to this size together are rewritten here, where all of them are held unpacked
meanwhile; executors shuffle what they hold. Measured: ``make bench ONLY=upkeep``, `manifests`."""

# -- upkeep ----

DELETED_FILES: Final = 10_000
"""Up to so many files are deleted here: a minute's work of 16 threads at most, even where a store
takes 100 ms for one. Local disks measured: ``python -m bench.deleting``."""

FILES_OF_A_DELETION: Final = 100_000
"""So many files are of one job: after each it can be told how far it is. Chosen."""

DELETIONS_A_TASK: Final = 1_000
"""A task deletes so many files. Chosen."""

CHECKED_FILES: Final = 2_000
"""Up to so many files are looked at here. Chosen."""

LISTED_FOLDERS: Final = 1_000
"""Up to so many folders of a level are listed here, with all that is below them. Chosen."""

PATHS_A_BUCKET: Final = 250_000
"""So many paths are compared at once by a task. Chosen."""

MOST_NAMED: Final = 100_000
"""So many orphans or problems that executors found are named in a result. Chosen."""

# -- delete files ----

DELETED_ROWS: Final = 16_000_000
DELETE_FILES: Final = 256
"""Up to so many rows and files of deletes are written here, where Spark's job costs as much as
they do. Measured: ``make bench ONLY=deletes``."""

WORDS_A_TASK: Final = 1 << 17
"""A task writes about so many words of deletes. Chosen."""

WORDS_OF_A_FILE: Final = 1 << 10
EARLIER_ROWS_OF_A_WORD: Final = 16
"""A data file counts as so many words, and so many rows of its earlier deletes as one. Chosen."""

# -- writes ----

SHUFFLE_PARTS: Final = 64
"""A shuffle has at least so many parts, of which Spark makes tasks of equal bytes: with few parts
the heaviest one decides, or a partition's rows are cut into more files than they need. Chosen."""

OPEN_FILES: Final = 8
"""Where rows stay with the task that reads them, it has so many files open before it sorts rows.
Chosen."""

FEW_VALUES: Final = 100_000
"""So many values of a partition are few, and Arrow writes them: of about twice as many Spark's own
writer costs less. Measured: ``make bench ONLY=append``."""

MANY_PARTITIONS: Final = 100
"""So many partitions of a write are many: Spark's writer takes a hundredth of a second for each
on a local disk, and to start Python on executors takes about one once. Measured:
``make bench ONLY=small``."""

JOINED_PIECES: Final = 16
"""So many tasks at most write a file together. Chosen."""

# -- compaction ----

SAMPLED_FILES: Final = 32
SAMPLED_ROWS: Final = 2_000_000
SAMPLE: Final = 100_000
"""So many rows of a sample come to the driver, of so many rows of so many files. Chosen."""

COMPARED_TASKS: Final = 64
"""Ranges of rows are chosen for up to so many tasks: each is a comparison for every row. Chosen."""

# -- scans ----

OPEN_COST: Final = 4 << 20
SPLIT: Final = 128 << 20
"""Spark's own defaults of what a file costs to open, and of what a task of a scan reads, in
bytes."""
