"""The configured catalogs, their stores and clocks: whether they answer."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from frazil.catalog.config import DEFAULT_NAME, configured_names, resolve
from frazil.catalog.pointer.sql import SqlCatalog
from frazil.catalog.pointer.sql.engine import TimeLimits, database_url, make_engine
from frazil.catalog.protocol import Catalog
from frazil.cli.app import Settings
from frazil.cli.commands.setup.findings import Finding
from frazil.errors import FrazilError, MissingFileError
from frazil.storage.files import FileIO
from frazil.storage.paths import is_local, join, normalize_location, redact, scheme_of

T = TypeVar("T")

_SETTINGS: Final = "frazil catalog ls shows the settings and where they are"
_FAR_APART: Final = timedelta(seconds=5)


def meant_catalogs(settings: Settings) -> list[Settings]:
    """Return the catalog that the command line names, or all that are configured."""
    if settings.name is not None or settings.properties:
        return [settings]
    return [Settings(name) for name in configured_names()]


def place_findings(settings: Settings, *, write: bool) -> Iterator[Finding]:
    """Yield what is found of one catalog: the catalog, its store, its clocks.

    Args:
        settings: which catalog.
        write: whether a file is written to the store, and deleted.
    """
    name = settings.name or DEFAULT_NAME
    try:
        properties = resolve(settings.name, settings.properties).properties
    except FrazilError as error:
        yield Finding(f"catalog {name}", "failed", _one_line(error, settings.properties))
        return
    try:
        catalog, took = _time(settings.catalog)
    except Exception as error:
        # Whatever a driver raises is a finding here.
        yield Finding(f"catalog {name}", "failed", _one_line(error, properties), _SETTINGS)
    else:
        yield _answers(name, catalog, took, properties)
        yield from _database_clock(name, catalog)
        with suppress(Exception):
            catalog.close()
    warehouse = properties.get("warehouse", "")
    if scheme_of(warehouse) or (warehouse and properties.get("type", "").lower() != "rest"):
        yield from _store(name, normalize_location(warehouse), properties, write=write)


def _answers(
    name: str, catalog: Catalog, opened: timedelta, properties: Mapping[str, str]
) -> Finding:
    check = f"catalog {name}"
    try:
        found, listed = _time(catalog.list_namespaces)
    except Exception as error:
        return Finding(check, "failed", _one_line(error, properties), _SETTINGS)
    count = f"{len(found)} namespace{'' if len(found) == 1 else 's'}"
    spent = f"{_ms(opened)} to connect, {_ms(listed)} to list"
    return Finding(check, "ok", f"{catalog.kind}, {count}; {spent}")


def _database_clock(name: str, catalog: Catalog) -> Iterator[Finding]:
    """The time of PostgreSQL; SQLite has that of this machine."""
    if not isinstance(catalog, SqlCatalog):
        return
    url = database_url(catalog.properties)
    if url.get_backend_name() != "postgresql":
        return
    engine = make_engine(url, limits=TimeLimits.from_properties(catalog.properties))
    with suppress(SQLAlchemyError):
        with engine.connect() as connection:
            connection.execute(text("select 1"))
            before = datetime.now(UTC)
            there = connection.execute(text("select clock_timestamp()")).scalar_one()
            after = datetime.now(UTC)
        yield _clock(f"clock of {name}'s database", there, before + (after - before) / 2)
    engine.dispose()


def _store(
    name: str, place: str, properties: Mapping[str, str], *, write: bool
) -> Iterator[Finding]:
    """Whether a warehouse can be listed and, if asked for, written."""
    check = f"store of {name}"
    io = FileIO(properties)
    try:
        found, took = _time(lambda: io.list_folder(place))
    except MissingFileError:
        yield Finding(
            check, "warning", f"there is no folder {redact(place)}", "the first table makes it"
        )
    except Exception as error:
        yield Finding(check, "failed", _one_line(error, properties), _SETTINGS)
        return
    else:
        count = f"{len(found)} name{'' if len(found) == 1 else 's'}"
        yield Finding(check, "ok", f"{redact(place)} holds {count}; {_ms(took)} to list")
    if write:
        yield from _findings_of_writing(name, io, place, properties)


def _findings_of_writing(
    name: str, io: FileIO, place: str, properties: Mapping[str, str]
) -> Iterator[Finding]:
    check = f"writing to the store of {name}"
    path = join(place, f"frazil-doctor-{uuid.uuid4()}.txt")
    try:
        before = datetime.now(UTC)
        _, written = _time(lambda: io.create(path, b"written by frazil doctor, to be deleted\n"))
        after = datetime.now(UTC)
    except Exception as error:
        advice = f"whoever runs Frazil here needs the right to write below {redact(place)}"
        yield Finding(check, "failed", _one_line(error, properties), advice)
        return
    modified = None if is_local(place) else _time_of_change(io, place, path)
    try:
        _, deleted = _time(lambda: io.delete(path))
    except Exception as error:
        advice = f"delete {redact(path)} by other means"
        yield Finding(check, "failed", _one_line(error, properties), advice)
        return
    yield Finding(check, "ok", f"{_ms(written)} to write a file, {_ms(deleted)} to delete it")
    if modified is not None:
        yield _clock(f"clock of {name}'s store", modified, before + (after - before) / 2)


def _time_of_change(io: FileIO, place: str, path: str) -> datetime | None:
    with suppress(Exception):
        files, _ = io.list_level(place)
        for each in files:
            if each.path == path and each.modified_ms:
                return datetime.fromtimestamp(each.modified_ms / 1000, UTC)
    return None


def _clock(check: str, there: datetime, here: datetime) -> Finding:
    apart = there - here
    # A store tells whole seconds.
    if abs(apart) <= _FAR_APART:
        return Finding(check, "ok", f"within {_FAR_APART.seconds} s of this machine's")
    words = "ahead of" if apart > timedelta() else "behind"
    found = f"{abs(apart).total_seconds():.0f} s {words} this machine's"
    return Finding(check, "warning", found, "let both follow a time server (NTP)")


def _time(work: Callable[[], T]) -> tuple[T, timedelta]:
    started = time.perf_counter()
    answer = work()
    return answer, timedelta(seconds=time.perf_counter() - started)


def _ms(spent: timedelta) -> str:
    return f"{spent / timedelta(milliseconds=1):.0f} ms"


def _one_line(error: Exception, properties: Mapping[str, str]) -> str:
    """An error in one line without secrets."""
    known = str(error) if isinstance(error, FrazilError) else f"{type(error).__name__}: {error}"
    return " ".join(redact(known, properties).split())
