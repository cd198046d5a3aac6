"""Reports become files: a page about a table, or a folder of pages about a lake."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Final

from frazil.catalog.identifiers import Identifier, parse_namespace, shown
from frazil.catalog.protocol import Catalog
from frazil.errors import FrazilError, StorageError
from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO
from frazil.storage.paths import redact
from frazil.storage.side_by_side import READING_THREADS, in_threads
from frazil.table.maintenance.progress import OnMaintenance, tell_nobody
from frazil.table.report.index import LakeIndex, index_page
from frazil.table.report.lake import LakeEntry, entries_of, entry_of, names_of
from frazil.table.report.layout import Library, Surroundings, plotting_library
from frazil.table.report.page import report_page

_INDEX: Final = "index.html"
_TABLES: Final = "tables"
_LIBRARY: Final = "plotly.js"
_AROUND: Final = Surroundings(Library(f"../{_LIBRARY}"), home=f"../{_INDEX}")
_LONGEST_SLUG: Final = 60
_DIGITS: Final = 20
_PAGE_FILE: Final = re.compile(rf"[a-z0-9_-]{{1,{_LONGEST_SLUG}}}-[0-9a-f]{{{_DIGITS}}}\.html")


@dataclass(frozen=True, slots=True)
class LakeReportProgress:
    """What the pages of a lake are at.

    Attributes:
        tables: how many there are.
        tables_done: those whose page is there, or that cannot be loaded.
    """

    tables: int
    tables_done: int

    @property
    def share(self) -> float | None:
        """How much is done, from 0 to 1; None while that is unknown."""
        return self.tables_done / self.tables if self.tables else None

    def __str__(self) -> str:
        return f"{self.tables_done:,} of {self.tables:,} tables"


@dataclass(frozen=True, slots=True)
class LakeReport:
    """A folder of pages about a lake.

    Attributes:
        index: the file to open.
        tables, views: how many the index has.
        problems: why those tables and views have no page that could not be loaded.
    """

    index: Path
    tables: int
    views: int
    problems: dict[str, str]


def write_report(
    path: str | os.PathLike[str],
    *,
    name: str,
    metadata: TableMetadata,
    io: FileIO,
    on_progress: OnMaintenance | None = None,
) -> None:
    """Write the page about a table to a local file, in place of one that is there.

    Raises StorageError: the file cannot be written.
    """
    _write(Path(path), report_page(name, metadata, io, tell=on_progress or tell_nobody).html)


def write_lake_report(
    folder: str | os.PathLike[str],
    catalog: Catalog,
    *,
    namespace: str | Identifier = (),
    on_progress: Callable[[LakeReportProgress], None] = tell_nobody,
) -> LakeReport:
    """Write an index of a lake and a page about each table into a local folder.

    A table that cannot be loaded is a line of the index that says why. Pages that are there are
    replaced, and those of tables that are not there any more go, once the index is written.
    `namespace`: with those below it; the whole lake unless given.
    Raises StorageError: the folder cannot be written.
    """
    target = Path(folder)
    library = plotting_library()
    top = parse_namespace(namespace)
    names = names_of(catalog, top=top, told=_told_of(catalog))
    pages = target / _TABLES
    try:
        pages.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"the folder {target} cannot be made: {error}") from error
    one_by_one, numbers = Lock(), count(1)

    def describe(name: Identifier) -> LakeEntry:
        entry, page = _describe_table(catalog, name)
        if page is not None:
            _write(pages / page_file(name), page)
        with one_by_one:
            on_progress(LakeReportProgress(len(names.tables), next(numbers)))
        return entry

    tables = in_threads(describe, names.tables, threads=READING_THREADS, name="frazil-report")
    views = entries_of(catalog, (), names.views, told=_told_of(catalog))
    _write(target / _LIBRARY, library)
    entries = sorted([*tables, *views], key=lambda each: each.identifier)
    title = shown(top) if top else f"The lake {catalog.name}"
    index = LakeIndex(title=title, names=names, entries=entries, found=len(entries), is_folder=True)
    _write(target / _INDEX, index_page(index, link=_link))
    _remove_others(pages, {page_file(each.identifier) for each in tables if _link(each)})
    problems = {shown(each.identifier): each.problem for each in entries if each.problem}
    return LakeReport(target / _INDEX, len(tables), len(views), problems)


def page_file(name: Identifier) -> str:
    """Return the name of a table's file: for any name one of its own, also where case is nothing.

    Only small letters, digits and hyphens are in it, so it leads to no other folder.
    """
    digest = hashlib.sha256(json.dumps(name).encode()).hexdigest()[:_DIGITS]
    words = re.sub(r"[^a-z0-9_]+", "-", ".".join(name).lower())[:_LONGEST_SLUG].strip("-")
    return f"{words or 'table'}-{digest}.html"


def _describe_table(catalog: Catalog, name: Identifier) -> tuple[LakeEntry, str | None]:
    """What the index says of a table, and its page; no page where it cannot be loaded."""
    told = _told_of(catalog)
    try:
        table = catalog.load_table(name)
        entry = entry_of(name, table.metadata)
        page = report_page(shown(name), table.metadata, table.io, around=_AROUND)
    except Exception as error:
        return LakeEntry(identifier=name, problem=told(error)), None
    return replace(entry, health=(page.health, page.health)), page.html


def _link(entry: LakeEntry) -> str | None:
    if entry.kind == "view" or entry.problem is not None:
        return None
    return f"{_TABLES}/{page_file(entry.identifier)}"


def _told_of(catalog: Catalog) -> Callable[[Exception], str]:
    def problem_of(error: Exception) -> str:
        text = str(error) if isinstance(error, FrazilError) else f"{type(error).__name__}: {error}"
        return " ".join(redact(text, catalog.properties).split())

    return problem_of


def _remove_others(pages: Path, kept: set[str]) -> None:
    """Remove pages of an earlier report that the index does not have; nothing else goes."""
    try:
        for each in list(pages.iterdir()):
            if _PAGE_FILE.fullmatch(each.name) and each.name not in kept:
                each.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"old pages in {pages} cannot be removed: {error}") from error


def _write(target: Path, page: str) -> None:
    """Write a file, in place of one that is there."""
    half = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        try:
            half.write_text(page, encoding="utf-8")
            half.replace(target)
        finally:
            half.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"the report {target} cannot be written: {error}") from error
