"""Delete files that exist in manifests alone; what they delete is in a dictionary."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyroaring import BitMap64
from table_cases import live_entries, position_deletes, short, vector

from frazil.format.manifests import Content, DataFile
from frazil.table.handle import TableHandle

Rows = dict[str, set[int]]
Key = tuple[str, int | None]


class Deletes:
    """What delete files hold."""

    def __init__(self) -> None:
        self.held: dict[Key, Rows] = {}
        self.made = 0

    def note(self, file: DataFile, rows: Rows) -> DataFile:
        self.held[file.file_path, file.content_offset] = rows
        return replace(file, record_count=sum(map(len, rows.values())))

    def new(self, version: int, rows: Rows, *, of_partition: bool = False) -> list[DataFile]:
        """Delete files of rows by data file."""
        self.made += 1
        if of_partition and version == 2:
            return [self.note(position_deletes(f"d{self.made}"), rows)]
        make = vector if version > 2 else position_deletes
        return [
            self.note(make(f"d{self.made}{short(path)}", about=short(path)), {path: positions})
            for path, positions in sorted(rows.items())
        ]

    def live(self, table: TableHandle) -> tuple[Rows, list[DataFile]]:
        """What the table's deletes delete, and the delete files, as PyIceberg reads them."""
        rows: Rows = {}
        files: list[DataFile] = []
        about: list[str] = []
        for entry in live_entries(table):
            found = entry.data_file
            if int(found.content) != int(Content.POSITION_DELETES):
                continue
            offset = getattr(found, "content_offset", None)
            [key] = [k for k in self.held if k[0] == found.file_path and offset in (None, k[1])]
            for path, positions in self.held[key].items():
                rows[path] = rows.get(path, set()) | positions
                about.append(path)
            files.append(self.entry(key))
        if table.metadata.format_version > 2:
            assert len(about) == len(set(about)), "a data file has one vector at most"
        return rows, files

    def entry(self, key: Key) -> DataFile:
        path, offset = key
        [about, *others] = self.held[key]
        if offset is None:
            found = position_deletes("x", about=None)
            return replace(found, file_path=path, referenced_data_file=None if others else about)
        return replace(vector("x", about="x"), file_path=path, referenced_data_file=about)


class DeletesCompared:
    """The part of an operation's rows that is about what delete files hold."""

    def __init__(self, deletes: Deletes) -> None:
        self.deletes = deletes

    def deleted_by(
        self, deletes: Sequence[DataFile], paths: Collection[str]
    ) -> Mapping[str, BitMap64]:
        found: dict[str, BitMap64] = {}
        for delete in deletes:
            held = self.deletes.held[delete.file_path, delete.content_offset]
            for path in held.keys() & set(paths):
                found[path] = found.get(path, BitMap64()) | BitMap64(held[path])
        return found

    def write_vectors(self, metadata: Any, deleted: Mapping[str, BitMap64]) -> list[DataFile]:
        return self.deletes.new(3, {path: set(rows) for path, rows in deleted.items()})

    def matching(self, *asked: Any) -> Mapping[str, int]:
        """Deletes alone are about no new rows."""
        return {}
