"""Deleted positions of data files as the files that say so; on the driver and on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Protocol

from frazil.format.manifests import DataFile
from frazil.format.puffin import PuffinBuilder, deletion_vector_to_bytes
from frazil.spark.deletes.bitmap import Words
from frazil.storage.file_kinds import VECTOR_FILES
from frazil.storage.parquet.position_deletes import PositionDeleteFile, PositionDeleteOptions

_WORDS_AT_ONCE: Final = 1 << 15
"""So many words are spelled out as positions at a time."""

_BYTES_OF_A_WORD: Final = 64 * 8
"""What the positions of a full word take where they are not compressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDeletes:
    """What is deleted of one data file.

    Attributes:
        ordinal: the data file's, in the plan.
        path: the data file's, as its manifest spells it.
        group: equal for data files of one spec and partition; they come one after the other.
        found: the positions that are to be deleted.
        earlier: those that deletes which the new ones hold too have deleted before.
    """

    ordinal: int
    path: str
    group: int
    found: Words
    earlier: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """The entry of a new delete file or vector.

    Attributes:
        entry: without spec and partition, which are those of its data files.
        ordinals: the data files that it is about.
        deleted_rows: what it deletes that was not deleted before.
    """

    entry: DataFile
    ordinals: tuple[int, ...]
    deleted_rows: int


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """A file to be written: where, its bytes, and the entries that are in it."""

    path: str
    data: bytes
    entries: tuple[NewEntry, ...]


class Encoder(Protocol):
    """Makes files of what is deleted; it does no I/O and can be sent to executors."""

    def files(
        self, deletes: Iterable[FileDeletes], path: Callable[[int, int], str]
    ) -> Iterator[EncodedFile]:
        """Return files, one after the other.

        Args:
            deletes: of each data file, ordered by group and path.
            path: where the file goes, by its number from 1 on and the ordinal of a data file.
        """


@dataclass(frozen=True, slots=True)
class VectorEncoder:
    """One deletion vector a data file, many in a Puffin file.

    Attributes:
        target_size: a Puffin file takes no further vector when it has so many bytes.
        writes_known: whether a data file of which nothing new is deleted gets a vector too.
    """

    target_size: int
    writes_known: bool = False

    def files(
        self, deletes: Iterable[FileDeletes], path: Callable[[int, int], str]
    ) -> Iterator[EncodedFile]:
        """Return Puffin files; see `Encoder`."""
        puffin = _PuffinFile()
        count = 1
        for each in deletes:
            every = Words.union((each.found, each.earlier))
            rows = every.cardinality
            if rows == (0 if self.writes_known else each.earlier.cardinality):
                continue
            puffin.add(each, every, rows)
            if puffin.size >= self.target_size:
                yield puffin.encoded_file(path(count, each.ordinal))
                puffin = _PuffinFile()
                count += 1
        if puffin.entries:
            yield puffin.encoded_file(path(count, puffin.entries[0].ordinals[0]))


class _PuffinFile:
    """A Puffin file in the making."""

    def __init__(self) -> None:
        self.entries: list[NewEntry] = []
        self.size = 0
        self._builder = PuffinBuilder()

    def add(self, deletes: FileDeletes, every: Words, rows: int) -> None:
        blob = self._builder.add_deletion_vector(
            deletion_vector_to_bytes(every.bitmap()),
            referenced_data_file=deletes.path,
            cardinality=rows,
        )
        entry = DataFile(
            content=VECTOR_FILES.content,
            file_path="",
            file_format=VECTOR_FILES.file_format,
            record_count=rows,
            file_size_in_bytes=0,
            referenced_data_file=deletes.path,
            content_offset=blob.offset,
            content_size_in_bytes=blob.length,
        )
        self.size = blob.offset + blob.length
        new = rows - deletes.earlier.cardinality
        self.entries.append(NewEntry(entry=entry, ordinals=(deletes.ordinal,), deleted_rows=new))

    def encoded_file(self, path: str) -> EncodedFile:
        data = self._builder.to_bytes()
        return EncodedFile(
            path,
            data,
            tuple(
                replace(
                    each,
                    entry=replace(each.entry, file_path=path, file_size_in_bytes=len(data)),
                )
                for each in self.entries
            ),
        )


@dataclass(frozen=True, slots=True)
class PositionEncoder:
    """Position delete files: of one data file each, or of many of one partition.

    Attributes:
        options: how they are encoded.
        target_size: a file of about so many bytes is closed, and another one begun.
        by_partition: whether a file may be about many data files.
        writes_known: whether data files of which nothing new is deleted are in files too.
    """

    options: PositionDeleteOptions
    target_size: int
    by_partition: bool
    writes_known: bool = False

    def files(
        self, deletes: Iterable[FileDeletes], path: Callable[[int, int], str]
    ) -> Iterator[EncodedFile]:
        """Return Parquet files; see `Encoder`."""
        words_at_once = max(1, min(_WORDS_AT_ONCE, self.target_size // _BYTES_OF_A_WORD))
        current: _ParquetFile | None = None
        group: int | None = None
        count = 0
        for each in deletes:
            every = Words.union((each.found, each.earlier))
            rows = every.cardinality
            new = rows - each.earlier.cardinality
            if not (rows if self.writes_known else new):
                continue
            if current is not None and not (self.by_partition and group == each.group):
                yield current.encoded_file()
                current = None
            group = each.group
            for chunk in every.chunks(words_at_once):
                if current is not None and current.file.size_in_bytes >= self.target_size:
                    yield current.encoded_file()
                    current = None
                if current is None:
                    count += 1
                    current = _ParquetFile(self.options, path(count, each.ordinal))
                current.add(each, chunk, new)
                # Of a data file whose deletes fill several files the first one counts them.
                new = 0
        if current is not None:
            yield current.encoded_file()


class _ParquetFile:
    """A position delete file in the making."""

    def __init__(self, options: PositionDeleteOptions, path: str) -> None:
        self.file = PositionDeleteFile(options)
        self._path = path
        self._ordinals: list[int] = []
        self._deleted = 0

    def add(self, deletes: FileDeletes, words: Words, new: int) -> None:
        self.file.add(deletes.path, words.values())
        if self._ordinals[-1:] != [deletes.ordinal]:
            self._ordinals.append(deletes.ordinal)
        self._deleted += new

    def encoded_file(self) -> EncodedFile:
        data, entry = self.file.close(self._path)
        new = NewEntry(entry=entry, ordinals=tuple(self._ordinals), deleted_rows=self._deleted)
        return EncodedFile(self._path, data, (new,))
