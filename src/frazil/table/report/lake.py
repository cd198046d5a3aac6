"""What an index of a lake shows: names, and what the newest metadata says of each; no manifests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.metadata_files import read_pointed_metadata
from frazil.catalog.protocol import Capability, Catalog
from frazil.errors import ConfigurationError, FrazilError, NoSuchNamespaceError
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots.summaries import count_in
from frazil.storage.side_by_side import READING_THREADS, in_threads
from frazil.table.maintenance.optimizing.health import Health, health_by_summary

_COMMENT: Final = "comment"

Told = Callable[[Exception], str]
"""What a page says of an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeEntry:
    """A table or a view as an index shows it; None is what is not known.

    Attributes:
        identifier: its name.
        kind: table or view.
        rows: deleted ones included.
        files: data files.
        size_in_bytes: of all its files, those with deletes among them.
        health: the worst and the best that it may be.
        changed_ms: when it was changed last, since the epoch.
        comment: what its properties say of it.
        problem: why nothing else is known of it.
    """

    identifier: Identifier
    kind: Literal["table", "view"] = "table"
    rows: int | None = None
    files: int | None = None
    size_in_bytes: int | None = None
    health: tuple[Health, Health] | None = None
    changed_ms: int | None = None
    comment: str = ""
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class LakeNames:
    """The names that a lake has.

    Attributes:
        namespaces: sorted.
        tables, views: sorted.
        problems: namespaces that could not be listed, and why.
        unread: namespaces that are seen for what is below them, and not listed themselves.
    """

    namespaces: tuple[Identifier, ...]
    tables: tuple[Identifier, ...]
    views: tuple[Identifier, ...]
    problems: Mapping[Identifier, str] = field(default_factory=dict)
    unread: frozenset[Identifier] = frozenset()


@dataclass(frozen=True, slots=True)
class _Listed:
    below: Sequence[Identifier] = ()
    tables: Sequence[Identifier] = ()
    views: Sequence[Identifier] = ()
    problem: str | None = None
    is_gone: bool = False


def names_of(
    catalog: Catalog,
    *,
    told: Told,
    top: Identifier = (),
    may_read: Callable[[Identifier], bool] = lambda _: True,
    may_see: Callable[[Identifier], bool] = lambda _: True,
) -> LakeNames:
    """Return the names of a lake, or of a namespace and those below it.

    `told` is called with what is said of a namespace that cannot be listed; `top` is the whole lake
    unless given; `may_read` says which namespaces' tables are listed, `may_see` which are looked
    into.
    """
    has_views = catalog.can(Capability.VIEWS)

    def views_of(namespace: Identifier) -> tuple[Sequence[Identifier], str | None]:
        """A server may say that it has views and then refuse; its tables are there all the same."""
        try:
            return (catalog.list_views(namespace) if has_views else []), None
        except NoSuchNamespaceError:
            raise
        except FrazilError as error:
            return [], told(error)

    def list_names(namespace: Identifier) -> _Listed:
        try:
            below = [each for each in catalog.list_namespaces(namespace) if may_see(each)]
            if not namespace or not may_read(namespace):
                return _Listed(below)
            tables = catalog.list_tables(namespace)
            views, problem = views_of(namespace)
            return _Listed(below, tables, views, problem)
        except NoSuchNamespaceError:
            if namespace == top:
                raise
            return _Listed(is_gone=True)
        except FrazilError as error:
            if namespace == top:
                raise
            return _Listed(problem=told(error))

    found: dict[Identifier, _Listed] = {}
    waiting = [top]
    while waiting:
        answers = in_threads(list_names, waiting, threads=READING_THREADS, name="frazil-names")
        found |= dict(zip(waiting, answers, strict=True))
        waiting = [each for one in answers for each in one.below if each not in found]
    there = {name: each for name, each in found.items() if name and not each.is_gone}
    return LakeNames(
        tuple(sorted(there)),
        tuple(sorted(table for each in there.values() for table in each.tables)),
        tuple(sorted(view for each in there.values() for view in each.views)),
        {name: each.problem for name, each in there.items() if each.problem is not None},
        frozenset(name for name in there if not may_read(name)),
    )


def entries_of(
    catalog: Catalog, tables: Sequence[Identifier], views: Sequence[Identifier], *, told: Told
) -> list[LakeEntry]:
    """Return what the newest metadata says of tables and views, side by side; sorted by name.

    The catalog is asked once for all tables where it can, else once for each. What cannot be loaded
    is an entry that says so.
    """
    places = _places(catalog, tables)

    def table_entry(name: Identifier) -> LakeEntry:
        try:
            place = places.get(name)
            if place is None:
                return entry_of(name, catalog.load_table(name).metadata)
            return entry_of(name, read_pointed_metadata(catalog.io, place))
        except Exception as error:
            return LakeEntry(identifier=name, problem=told(error))

    def view_entry(name: Identifier) -> LakeEntry:
        try:
            metadata = catalog.load_view(name).metadata
            changed = max((each.timestamp_ms for each in metadata.version_log), default=None)
            comment = metadata.properties.get(_COMMENT, "")
            return LakeEntry(identifier=name, kind="view", changed_ms=changed, comment=comment)
        except Exception as error:
            return LakeEntry(identifier=name, kind="view", problem=told(error))

    found = in_threads(table_entry, tables, threads=READING_THREADS, name="frazil-tables")
    found += in_threads(view_entry, views, threads=READING_THREADS, name="frazil-views")
    return sorted(found, key=lambda each: each.identifier)


def entry_of(name: Identifier, metadata: TableMetadata) -> LakeEntry:
    """Return what an index shows of a table's metadata."""
    snapshot = metadata.current_snapshot
    summary = {} if snapshot is None else snapshot.summary
    nothing = 0 if snapshot is None else None
    counts = [
        count_in(summary, f"total-{each}") if nothing is None else nothing
        for each in ("records", "data-files", "files-size")
    ]
    try:
        health = health_by_summary(metadata)
    except ConfigurationError:
        # The other facts hold; the table's own page says which property it is.
        health = None
    return LakeEntry(
        identifier=name,
        rows=counts[0],
        files=counts[1],
        size_in_bytes=counts[2],
        health=health,
        changed_ms=metadata.last_updated_ms,
        comment=metadata.properties.get(_COMMENT, ""),
    )


def _places(catalog: Catalog, tables: Sequence[Identifier]) -> Mapping[Identifier, str]:
    """Where the metadata of tables lies, by one question; nothing where that tells nothing."""
    if not catalog.looks_up_together:
        return {}
    try:
        return catalog.metadata_locations(tables)
    except FrazilError:
        # The row of one table may be broken: each is asked by itself.
        return {}


def matching_names(names: Sequence[Identifier], query: str) -> list[Identifier]:
    """Return the names that hold a text, in any case."""
    wanted = query.strip().lower()
    return [each for each in names if wanted in search_text(each)]


def search_text(name: Identifier) -> str:
    """Return what a search looks at: a name with the quotes that it may need, and without them."""
    plain, quoted = ".".join(name).lower(), shown(name).lower()
    return plain if plain == quoted else f"{plain} {quoted}"
