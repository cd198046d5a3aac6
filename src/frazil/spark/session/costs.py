"""What work costs: up to how much of it is done beside the session ("here"), and a task's share.

A job of Spark's takes about a tenth of a second before its first row, and the first Python on an
executor about one. Where a command measured a figure it is named; all others are chosen. Read them
from this module at each use: a test or a bench that changes one changes it for everybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MOST_TASKS: Final = 64
"""Items are spread over so many tasks at most."""

ITEMS_IN_FUNCTION: Final = 10_000
"""Up to so many items go to every task along with its function; more are rows."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Where one kind of work is done, in units that the caller counts.

    Attributes:
        here: up to so many units are worked on beside the session.
        a_task: so many units are worth a task.
        threads: so many items are worked on beside each other here.
    """

    here: int
    a_task: int
    threads: int

    def tasks(self, units: int) -> int:
        """Return how many tasks so many units are worth."""
        return min(units // self.a_task + 1, MOST_TASKS)


# -- plans ----

EXPLAINED_PAIRS: Final = 100_000
"""A plan with up to so many pairs of a data file and a delete says how the deletes are applied."""

# -- joins in statements ----

SMALL_SIDE_BYTES: Final = 64 << 20
LARGE_SIDE_BYTES: Final = 64 << 20
"""The keys of a side with up to so many bytes are read first, for one with so many at least: to
read them takes two tenths of a second. Measured by ``make bench ONLY=sql``."""

JOINED_KEYS: Final = 10_000
"""More keys of a small side are not compared with the bounds of files."""

OPENED_FILES: Final = 8
"""A query opens all files of a table on a local disk that has up to so many, and less bytes than a
large side: to open them takes less than to ask Spark's optimizer first which it needs. Measured by
``make bench ONLY=sql``."""

# -- rows that others added ----

ADDED_KEYS: Final = Cost(here=2_000_000, a_task=1_000_000, threads=4)
"""Units: rows of one column of whole numbers, some ten million a second. Measured by
``make bench ONLY=contention``."""

# -- footers of data files ----

REMOTE_FOOTERS: Final = Cost(here=128, a_task=32, threads=8)
"""Units: files of a store, each some requests to wait for."""

LOCAL_FOOTERS: Final = Cost(here=30_000, a_task=10_000, threads=1)
"""Units: columns in files of a local disk, so many a second. It is work of Python's, which threads
do not share, and a task starts in the time of several hundred footers of a narrow table."""

COLUMNS_OF_A_FOOTER: Final = 5
"""A footer costs as much as so many columns, beside its own."""

LABELLED: Final = 8
"""A footer that ids and types are put into costs so many times as much."""

# -- manifests ----

DECODED_BYTES: Final = 16 << 20
DECODED_MANIFESTS: Final = 1_000
DECODED_FILES: Final = 50_000
"""Manifests of up to so many bytes together, up to so many, and of so many files are shown from
here. Of a million files of two columns that took 14 s and 1.9 GB, whose manifests may be small."""

LISTED_SNAPSHOTS: Final = 100
"""The manifest lists of up to so many snapshots are read here."""

PRUNED: Final = Cost(here=256 << 20, a_task=16 << 20, threads=1)
"""Units: bytes of manifests that a predicate is tested on, 60 a file of four columns. Measured by
``python -m bench.ways PRUNED --executors 2``."""

PRUNING_CORES: Final = 2
"""Executors prune, and sum up partitions of more than `PLANNED_BYTES`, where they have more than
so many times the cores of this machine: they need about twice the driver's CPU, with that of their
virtual machines, and a second or two to start. Measured by the same command."""

PLANNED_BYTES: Final = 256 << 20
"""Of manifests of up to so many bytes together a few columns are decoded here, as for a plan."""

REWRITTEN_BYTES: Final = 64 << 20
REWRITTEN_FILES: Final = 250_000
"""Manifests of up to so many bytes together, of so many files, are rewritten here, where all of
them are held unpacked meanwhile: 1.1 GB for a million files of two columns. Executors shuffle what
they hold. Measured by `manifests` of ``make bench ONLY=maintenance``.
"""

# -- maintenance ----

CHECKED_FILES: Final = 2_000
"""Up to so many files are looked at here."""

FILES_OF_A_CHECK: Final = 500_000
"""So many files are of one job: after each it can be told how far it is."""

LISTED_FOLDERS: Final = 1_000
"""Up to so many folders of a level are listed here, with all that is below them."""

PATHS_A_BUCKET: Final = 250_000
"""A task compares about so many paths at once."""

MOST_NAMED: Final = 100_000
"""So many orphans or problems that executors found are named in a result."""

# -- delete files ----

DELETED_ROWS: Final = 16_000_000
DELETE_FILES: Final = 256
"""Deletes of up to so many rows in up to so many files are written here."""

WORDS_A_TASK: Final = 1 << 17
"""A task writes about so many words of deletes."""

WORDS_OF_A_FILE: Final = 1 << 10
EARLIER_ROWS_OF_A_WORD: Final = 16
"""A data file counts as so many words, and so many rows of its earlier deletes as one."""

# -- data files ----

COPIED_BYTES_HERE: Final = 16 << 20
COPIED_VALUES_HERE: Final = 4_000_000
COPIED_FILES_HERE: Final = 256
"""A group of a compaction with at most so much of each is copied here: a job of Spark's and its
Python take longer. `compaction` of ``make bench ONLY=stores`` shows that of small groups; where the
limits lie best is not measured."""

SHUFFLE_PARTS: Final = 64
"""A shuffle has at least so many parts, of which Spark makes tasks of equal bytes: with few parts
the heaviest one decides, or a partition's rows are cut into more files than they need."""

OPEN_FILES: Final = 8
"""Where rows stay with the task that reads them, it has so many files open before it sorts rows."""

FEW_VALUES: Final = 100_000
"""Up to so many values of each partition Arrow writes; on a local disk, of about twice as many
Spark's own writer costs less. Measured by ``make bench ONLY=slopes ROW=11`` and ``ONLY=changes``.
"""

MANY_PARTITIONS: Final = 100
"""So many partitions of a write are many: Spark's writer takes a hundredth of a second for each on
a local disk, which ``make bench ONLY=slopes ROW=11`` measures."""

JOINED_PIECES: Final = 16
"""So many tasks at most write a file together."""

# -- samples ----

SAMPLED_FILES: Final = 32
SAMPLED_ROWS: Final = 2_000_000
SAMPLE: Final = 100_000
"""So many rows of a sample come to the driver, of so many rows of so many files."""

COMPARED_TASKS: Final = 64
"""A sample gives the bounds of up to so many tasks: each is a comparison for every row."""

# -- scans ----

OPEN_COST: Final = 4 << 20
SPLIT: Final = 128 << 20
"""Spark's own defaults of what opening a file counts as, and of what a task reads, in bytes."""

PACKING: Final[Mapping[str, int]] = {
    "spark.sql.files.maxPartitionBytes": SPLIT,
    "spark.sql.files.openCostInBytes": OPEN_COST,
}
"""The properties of a session that say otherwise, and these defaults."""

EVEN_ROUNDS: Final = 4
"""Up to so many tasks for each core are made as many for each: of more the last round is a small
part of the time. Measured by ``make bench ONLY=changes``."""

# -- deletes that a read applies: measured by ``make bench ONLY=equality`` and ``ONLY=deletes`` ----

SENT_KEYS: Final = 1_000_000
"""Up to so many deleted keys are sent to every executor, if their files are no larger than
`SENT_BYTES`; more are shuffled with the rows."""

SENT_BYTES: Final = 32 * 1024 * 1024
"""Bitmaps up to this size are sent to every executor; larger ones are shuffled with the rows."""

KEYS_HERE: Final = 2_000_000
KEY_FILES_HERE: Final = 256
"""Up to so many keys are read beside the session: a Spark job would cost more."""

RESOLVED_ROWS: Final = 1_000_000
"""Files of fewer rows in all are not worth a job of their own: their deletes are joined."""

NEW_KEYS_JOINED: Final = 500_000
"""So many new keys at most are joined by the first read that meets them."""

RESOLVED_PAIRS: Final = 4_000_000
"""More pairs of a file and a delete are joined, unless resolving is asked for."""

WORDS_HERE: Final = 2_000_000
"""Up to so many words (32 MB) are collected by the driver; more stay with the executors."""

PLACES_HERE: Final = 16_000_000
"""Up to so many rows (128 MB) are collected one by one; words of more take a shuffle. Measured by
``python -m bench.delete_collection``."""

PLACES_LOOKED_AT: Final = 10 * PLACES_HERE
"""Where there are more rows than fit, but not more than this, tasks give their share of those that
fit, and are asked again if they have more. Of still more rows the share would be less than one in
twenty, and a second look would cost more than the shuffle."""

SMALL_FILE_ROWS: Final = 100_000
"""A file of so many rows at most is small."""

SMALL_ROWS_HERE: Final = 2_000_000
SMALL_FILES_HERE: Final = 10_000
"""Up to so many rows of small files, deleted keys and files of each are read beside the session."""

POSITIONS_HERE: Final = 16_000_000
POSITION_FILES_HERE: Final = 512
"""Up to so many deletes are read beside the session: a Spark job would cost more. Of more of them
executors make the bitmaps, once."""

BITMAP_BYTES_HERE: Final = 128 * 1024 * 1024
"""Up to so many bytes of bitmaps: those of a billion rows."""

DATA_FILES_HERE: Final = 20_000
"""Of so many data files what is deleted is kept in this process."""

PAIRS_HERE: Final = 4_000_000
"""And of so many pairs of a data file and a delete."""

# -- changes by key: measured by ``make bench ONLY=upserted`` ----

BIG_SHARE: Final = 10
"""A batch is a big part of a table with at most so many times its rows: reading the table's keys
costs little beside writing the batch."""

SMALL_TABLE: Final = 100_000
"""Rows whose keys are read in about the time that a commit takes."""

HEAVY_LOAD: Final = 10
"""Equality deletes are many where every so many rows there is one: each read pays for them."""

CHANGED_ROWS_A_TASK: Final = 100_000
KEYS_A_TASK: Final = 1_000_000
"""A task writes about so many changed rows, or keys."""

CHANGES_A_TASK: Final = 100_000
"""A task writes about so many changes at least, where the rows' partitions are small."""

# -- merges: measured by ``make bench ONLY=changes`` ----

MATCHED_BYTES: Final = 64 << 20
"""Matched rows of up to so many bytes are sent to every task; more are shuffled."""

MATCHES_HERE: Final = 2_000_000
"""Of up to so many matches the driver looks which rows of the source have one: 16 MB."""

SOURCE_KEY_BYTES: Final = 16 << 20
"""So much a source of one task gives of its keys; one of many tasks up to five times as much.
Measured by ``python -m bench.merge_sources``."""

MATCH_BYTES: Final = 32 << 20
"""So much is collected of rows that match."""

FILTERED_KEYS: Final = 2_000_000
"""The hashes of up to so many rows of the source are collected: 16 MB."""

FILTERED_ROWS: Final = 2_000_000
"""Of fewer rows the look-up itself costs less than to make the array."""

SOUGHT_VALUES: Final = 1_000
"""Of a source of up to so many rows the keys themselves are looked for, else their range."""

SOUGHT_ROWS: Final = 5_000_000
"""The ids of so many rows are sent to every task: 40 MB."""
