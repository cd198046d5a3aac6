"""Orphan files: what lies in a table's folder and no metadata reaches."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Literal, TypedDict, get_args

import polars as pl

from frazil.catalog.protocol import Capability, LoadedTable
from frazil.errors import StorageError, UnsupportedError, ValidationError
from frazil.format.html_text import ShownInNotebooks, size_text
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import GC_ENABLED
from frazil.storage.files import FileIO
from frazil.storage.listing import LISTED, Beginning, list_beginning, list_folders
from frazil.storage.paths import local_path, normalize_location
from frazil.storage.side_by_side import WAITING_THREADS, in_threads
from frazil.table.maintenance.file_paths import live_files
from frazil.table.maintenance.progress import (
    DeleteProgress,
    Deletion,
    OnDelete,
    tell_nobody,
)
from frazil.table.maintenance.reachable import metadata_folders, reachable_metadata
from frazil.table.manifests.comparable_paths import ComparablePaths
from frazil.table.port import HandlePort

PrefixMismatchMode = Literal["ERROR", "IGNORE", "DELETE"]
"""What becomes of files whose path metadata has with another scheme or authority."""

DEFAULT_AGE: Final = timedelta(days=3)
LEAST_AGE: Final = timedelta(hours=24)

FILE_COLUMN: Final = "orphan_file_location"
CONFLICT: Final = "conflict"
UNREACHED: Final = {**LISTED, CONFLICT: pl.String()}
"""Columns of files that metadata does not reach; `conflict`: or only by another prefix."""

METADATA_FILE: Final = r"\.metadata\.json(?:\.gz)?$"
"""What the names of metadata files match."""

_LOG = logging.getLogger(__name__)
_SHOWN: Final = 10
# What a killed write leaves: of Spark's committer, and of files that are made under another name.
_OF_A_COMMITTER: Final = "(^|/)_temporary(/|$)"
_HALF_MADE: Final = r"(?:^|/)\.[^/]+\.[0-9a-f]{32}\.tmp$"
_HIDDEN: Final = "(?:^|/)[._]"
_STAGED_COPY: Final = "/copy-table-staging-"


class OrphanSettings(TypedDict, total=False):
    """Keywords of `remove_orphan_files`, by Java's names.

    Attributes:
        location: the folder that is searched; the table's unless given. A folder that holds the
            metadata of another table is refused.
        file_list: a frame of `file_path` and `last_modified` (a time), in place of a listing; of
            Polars, or of Spark on a table that has a session.
        equal_schemes: schemes that count as one, as ``{"s3a,s3n": "s3"}``, which always holds.
        equal_authorities: the same of authorities: hosts, buckets, name services.
        prefix_mismatch_mode: of files that metadata names with another scheme or authority:
            ``ERROR`` raises, ``IGNORE`` keeps them, ``DELETE`` takes them for orphans.
        max_concurrent_deletes: files that are deleted beside each other; 16 unless given.
        least_age: how long ago `older_than` must be at least: 24 hours, as in Java's procedure.
            Less is safe only where nobody writes.
    """

    location: str
    file_list: Any
    equal_schemes: Mapping[str, str]
    equal_authorities: Mapping[str, str]
    prefix_mismatch_mode: PrefixMismatchMode
    max_concurrent_deletes: int
    least_age: timedelta


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrphanFilesResult(ShownInNotebooks):
    """What orphan removal found, and what it deleted.

    Attributes:
        frame: a Polars frame with the column of Java's procedure, `orphan_file_location`. Where
            executors looked for orphans, it has the first 100 000.
        orphan_files_count: orphans that were found.
        orphan_bytes: their sizes together.
        deleted_files_count: those that are deleted; 0 in a dry run.
        failures: files that could not be deleted, with the reason.
        is_dry_run: whether nothing was to be deleted.
        unfinished_uploads: files whose parts were sent to a store before `older_than` and never
            became a file; the parts are removed unless it is a dry run.
    """

    frame: pl.DataFrame
    orphan_files_count: int
    orphan_bytes: int
    deleted_files_count: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    is_dry_run: bool = False
    unfinished_uploads: tuple[str, ...] = ()

    def __repr__(self) -> str:
        uploads = [f"  upload   {path}: never completed" for path in self.unfinished_uploads]
        if not self.orphan_files_count:
            return "\n".join(["Orphan files: none", *uploads[:_SHOWN]])
        found = f"{self.orphan_files_count:,} files, {size_text(self.orphan_bytes)}"
        lines = [f"Orphan files{' (dry run)' if self.is_dry_run else ''}", f"  found    {found}"]
        if not self.is_dry_run:
            lines.append(f"  deleted  {self.deleted_files_count:,} files")
        lines += [f"  failed   {path}: {reason}" for path, reason in self.failures[:_SHOWN]]
        paths = self.frame[FILE_COLUMN].head(_SHOWN).to_list()
        lines += [f"  orphan   {path}" for path in paths]
        if self.orphan_files_count > len(paths):
            lines.append(f"  orphan   and {self.orphan_files_count - len(paths):,} more")
        return "\n".join([*lines, *uploads[:_SHOWN]])


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanSearch:
    """What is looked for, and where; may be sent to other processes.

    Attributes:
        location: the folder that is searched.
        older_than_ms: files are candidates that were changed before, milliseconds since the epoch.
        paths: how paths are compared.
        mode: what becomes of files that metadata has with another prefix.
        hidden_fields: partition fields whose folders look hidden.
        delete_threads: files that are deleted beside each other.
    """

    location: str
    older_than_ms: int
    paths: ComparablePaths
    mode: PrefixMismatchMode
    hidden_fields: tuple[str, ...]
    delete_threads: int

    @classmethod
    def of(
        cls, metadata: TableMetadata, older_than_ms: int | None, settings: OrphanSettings
    ) -> OrphanSearch:
        """Return the search that the arguments ask for.

        Raises:
            ValidationError: gc.enabled is false, `older_than` is too near, or a setting is wrong.
        """
        unknown = settings.keys() - OrphanSettings.__annotations__.keys()
        if unknown:
            raise ValidationError(
                f"{sorted(unknown)[0]} is no setting of remove_orphan_files; there are "
                f"{', '.join(OrphanSettings.__annotations__)}"
            )
        if not GC_ENABLED.of(metadata.properties):
            raise ValidationError(
                "cannot remove orphan files: gc.enabled is false, the table's files may belong to "
                "another table; set gc.enabled to true first"
            )
        mode = str(settings.get("prefix_mismatch_mode", "ERROR")).upper()
        if mode not in get_args(PrefixMismatchMode):
            raise ValidationError(
                f"prefix_mismatch_mode is {mode!r}; there are "
                + ", ".join(get_args(PrefixMismatchMode))
            )
        threads = settings.get("max_concurrent_deletes", WAITING_THREADS)
        if threads < 1:
            raise ValidationError(f"max_concurrent_deletes is {threads}; it is at least 1")
        location = settings.get("location")
        return cls(
            location=metadata.location.rstrip("/")
            if location is None
            else normalize_location(location),
            older_than_ms=_checked_age(older_than_ms, settings.get("least_age", LEAST_AGE)),
            paths=ComparablePaths.of(
                settings.get("equal_schemes"), settings.get("equal_authorities")
            ),
            mode=mode,  # type: ignore[arg-type]
            hidden_fields=tuple(
                sorted(
                    {
                        field.name
                        for spec in metadata.partition_specs
                        for field in spec.fields
                        if field.name.startswith(("_", "."))
                    }
                )
            ),
            delete_threads=threads,
        )

    def candidates(self, listed: pl.DataFrame) -> pl.DataFrame:
        """Return the listed files that are old enough and not hidden.

        Files whose age the store does not tell are none.
        """
        tail = pl.col("path").str.strip_prefix(self.location)
        for name in self.hidden_fields:
            tail = tail.str.replace_all(f"(^|/){re.escape(name)}=", "${1}x=")
        plain = tail.str.replace_all(_OF_A_COMMITTER, "${1}x${2}")
        # Twice: neighbours share their slash.
        plain = plain.str.replace_all(_OF_A_COMMITTER, "${1}x${2}")
        plain = plain.str.replace(_HALF_MADE, "/x")
        return listed.filter(
            pl.col("modified_ms") > 0,
            pl.col("modified_ms") < self.older_than_ms,
            ~plain.str.contains(_HIDDEN),
        )

    def unreached_files(self, candidates: pl.DataFrame, reached: pl.DataFrame) -> pl.DataFrame:
        """Return the candidates that metadata does not reach, or only by another prefix.

        Args:
            candidates: columns of `LISTED`.
            reached: the comparable parts of what metadata reaches.
        """
        named = candidates.hstack(self.paths.parts(candidates["path"])).with_row_index("nth")
        found = reached.unique().rename({"scheme": "its_scheme", "authority": "its_authority"})
        joined = named.join(found.with_columns(is_found=pl.lit(True)), on="key", how="left")
        # Plain paths are of the local disk; what metadata does not say fits everything.
        here = pl.col("scheme").fill_null("file")
        same_scheme = pl.col("its_scheme").is_null() | (pl.col("its_scheme") == here)
        said = pl.col("its_authority").fill_null("")
        same_authority = (said == "") | (said == pl.col("authority").fill_null(""))
        text = (
            pl.when(~same_scheme)
            .then(pl.format("{} and {}", "its_scheme", here))
            .otherwise(pl.format("{} and {}", said, pl.col("authority").fill_null("")))
        )
        judged = joined.with_columns(
            fits=(same_scheme & same_authority) & pl.col("is_found").fill_null(False),
            conflict=pl.when(pl.col("is_found")).then(text),
        )
        return (
            judged.group_by("nth", maintain_order=True)
            .agg(pl.col(*LISTED).first(), pl.col("fits").any(), pl.col(CONFLICT).first())
            .filter(~pl.col("fits"))
            .select(*UNREACHED)
        )

    def orphans(self, unreached: pl.DataFrame) -> pl.DataFrame:
        """Return the orphans among them, by the mode for other prefixes.

        Raises:
            ValidationError: the mode is ERROR, and metadata has some by another prefix.
        """
        conflicts = unreached[CONFLICT].drop_nulls().unique().sort().to_list()
        if self.mode == "DELETE" or not conflicts:
            return unreached
        if self.mode == "ERROR":
            raise ValidationError(
                "cannot tell whether some files are orphans: metadata names them by another scheme "
                f"or authority: {'; '.join(conflicts[:_SHOWN])}; say which are equal by "
                "equal_schemes and equal_authorities, or set prefix_mismatch_mode to IGNORE, which "
                "keeps such files, or to DELETE if they are surely not the table's"
            )
        return unreached.filter(pl.col(CONFLICT).is_null())

    def refuse_other_tables(
        self, listed: pl.DataFrame, own: Collection[str], earlier: Callable[[], Collection[str]]
    ) -> None:
        """Raise ValidationError where the folder holds metadata of another table.

        Args:
            listed: files below the folder.
            own: where the table's metadata lies.
            earlier: tells where it ever lay; asked where metadata lies elsewhere.
        """
        metadata = listed.filter(
            pl.col("path").str.contains(METADATA_FILE),
            ~pl.col("path").str.contains(_STAGED_COPY, literal=True),
        )["path"]
        folders = metadata.str.extract("^(.*)/[^/]*$", 1).unique().sort().alias("path")
        if folders.is_empty():
            return
        others = self._folders_of_others(folders, own)
        if len(others):
            others = self._folders_of_others(others, earlier())
        if len(others):
            raise ValidationError(
                f"{self.location} holds metadata of another table in {others[0]}, whose files "
                "would count as orphans; give a location that only this table has"
            )

    def _folders_of_others(self, folders: pl.Series, own: Collection[str]) -> pl.Series:
        mine = self.paths.parts(pl.Series("path", [f"{each}/x" for each in own], pl.String()))
        theirs = self.paths.parts(folders + "/x")
        return folders.filter(~theirs["key"].is_in(mine["key"].implode()))


def refuse_without_catalog(table: HandlePort) -> None:
    """Raise UnsupportedError for a table that is opened without a catalog.

    Newer metadata than that of the opened file may reach what seems to be an orphan.
    """
    if not table.catalog.can(Capability.CHANGES):
        raise UnsupportedError(
            f"the table {table.metadata.location} is opened without a catalog: newer metadata may "
            "reach its files, so none is deleted; open it through its catalog, or ask with dry_run"
        )


def remove_orphans(
    table: HandlePort,
    search: OrphanSearch,
    *,
    is_dry_run: bool,
    files: pl.DataFrame | None,
    tell: OnDelete = tell_nobody,
) -> OrphanFilesResult:
    """Find what no metadata reaches, and delete it unless it is a dry run.

    Args:
        table: is refreshed after the listing, so that a file counts as reached that was committed
            meanwhile.
        search: what is looked for.
        is_dry_run: whether nothing is deleted.
        files: in place of a listing, see `listing_of`.
        tell: called with what it is at.
    """
    io = table.io
    tell(DeleteProgress("searching"))
    if files is None:
        files = listing(io, list_beginning(io, search.location))
    loaded = table.refresh()
    reachable = reachable_metadata(io, loaded)
    search.refuse_other_tables(
        files, reachable.metadata_folders, partial(metadata_folders, io, loaded)
    )
    candidates = search.candidates(files)
    reached = reached_parts(io, loaded, search.paths, folders_of(search, candidates))
    unreached = search.unreached_files(candidates, reached)
    orphans = search.orphans(unreached)
    if not is_dry_run and len(orphans):
        newest = table.refresh()
        if newest.metadata_location != loaded.metadata_location:
            again = reached_parts(io, newest, search.paths)
            orphans = search.orphans(search.unreached_files(orphans.select(*LISTED), again))
    return delete_orphans(io, search, orphans, is_dry_run=is_dry_run, tell=tell)


def remove_unfinished_uploads(
    io: FileIO, search: OrphanSearch, *, is_dry_run: bool
) -> tuple[str, ...]:
    """Find files that were begun long ago and never became one, and remove their parts.

    A store that does not tell of them, or not to everybody, does not make a search fail.
    """
    try:
        begun = io.unfinished_uploads(search.location)
        old = [each for each in begun if each.begun_ms < search.older_than_ms]
        if not is_dry_run:
            in_threads(io.abort_upload, old, threads=search.delete_threads, name="frazil-uploads")
    except StorageError as error:
        _LOG.warning("uploads that were never completed are left: %s", error)
        return ()
    return tuple(each.path for each in old)


def listing(io: FileIO, beginning: Beginning) -> pl.DataFrame:
    """Return all files below a folder whose upper levels are listed.

    Raises:
        StorageError: a folder cannot be listed.
    """
    return pl.concat([beginning.files, list_folders(io, beginning.folders)])


def reached_parts(
    io: FileIO,
    table: LoadedTable,
    paths: ComparablePaths,
    real_folders: Collection[str] = (),
) -> pl.DataFrame:
    """Return the comparable parts of every path that a table reaches."""
    reachable = reachable_metadata(io, table)
    live = live_files(io, table.metadata, reachable.manifests).frame["file_path"]
    own = pl.Series("file_path", sorted(reachable.paths), pl.String())
    return paths.parts(pl.concat([live, own]), real_folders=real_folders)


def folders_of(search: OrphanSearch, listed: pl.DataFrame) -> frozenset[str]:
    """Return the folders of listed local files, if no link leads to the folder that is searched."""
    root = local_path(search.location)
    if root is None or listed.is_empty():
        return frozenset()
    probe = search.paths.parts(pl.Series("path", [f"{search.location}/x"]))["key"][0]
    if probe != f"{root.rstrip('/')}/x":
        return frozenset()
    folders = listed["path"].str.extract("^(?:file:/*)?(/.*)/[^/]*$", 1)
    return frozenset(folders.drop_nulls().unique().to_list())


def delete_orphans(
    io: FileIO,
    search: OrphanSearch,
    orphans: pl.DataFrame,
    *,
    is_dry_run: bool,
    tell: OnDelete = tell_nobody,
) -> OrphanFilesResult:
    """Delete the orphans unless it is a dry run, and say so."""
    failures: Mapping[str, str] = {}
    paths = orphans["path"].to_list()
    if not is_dry_run:
        deletion = Deletion(io, tell, len(paths))
        failures = deletion.delete(paths, threads=search.delete_threads)
        deletion.end()
    return OrphanFilesResult(
        frame=orphans.select(pl.col("path").alias(FILE_COLUMN)),
        orphan_files_count=len(orphans),
        orphan_bytes=int(orphans["size"].sum()),
        deleted_files_count=0 if is_dry_run else len(orphans) - len(failures),
        failures=tuple(failures.items()),
        is_dry_run=is_dry_run,
    )


def _checked_age(older_than_ms: int | None, least: timedelta) -> int:
    now = int(time.time() * 1000)
    if older_than_ms is None:
        return now - _milliseconds(DEFAULT_AGE)
    newest = now - _milliseconds(least)
    if older_than_ms > newest:
        when = datetime.fromtimestamp(older_than_ms / 1000, UTC).isoformat(timespec="seconds")
        if older_than_ms > now:
            raise ValidationError(
                f"older_than is {when}, which is still to come: files of a write that still runs "
                "would be deleted; give a time that has passed"
            )
        raise ValidationError(
            f"older_than is {when}, less than {least} ago: files of a write that still runs would "
            "be deleted; give an earlier time, or a shorter least_age where nobody writes"
        )
    return older_than_ms


def _milliseconds(length: timedelta) -> int:
    return int(length.total_seconds() * 1000)
