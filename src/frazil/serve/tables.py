"""Requests about tables, but for commits."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from frazil.catalog.identifiers import shown
from frazil.catalog.metadata_files import read_metadata
from frazil.catalog.protocol import Capability, LoadedTable
from frazil.errors import InvalidFormatError, MissingFileError, NoSuchTableError
from frazil.format.metadata import TableMetadata, metadata_to_bytes, metadata_to_json
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import UNPARTITIONED, PartitionSpec
from frazil.format.schema import Schema
from frazil.format.sorting import UNSORTED, SortOrder
from frazil.serve.answers import NOTHING, HttpAnswer, HttpError, bad_request, ok
from frazil.serve.calls import (
    Call,
    flag_in,
    identifier_of,
    names_answer,
    reading_request,
    table_name_of,
)
from frazil.serve.rights.access import Principal
from frazil.serve.rights.named_files import require_named_files
from frazil.serve.rights.owners import is_unique_name
from frazil.serve.service import ServedCatalog

_LOG = logging.getLogger("frazil.serve")
_NAMED: Final = 10
"""Kept files that an answer names."""

ALL, REFS = "all", "refs"


def list_tables(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with the tables of a namespace."""
    return names_answer(call, served.catalog.list_tables(call.namespace))


def create_table(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Make a table, or say what one would be that is staged."""
    with call.reading_body() as body:
        name = table_name_of(body.string("name"))
        schema = body.value_of("schema", Schema.from_json)
        spec = (
            body.value_of("partition-spec", PartitionSpec.from_json)
            if "partition-spec" in body
            else UNPARTITIONED
        )
        order = (
            body.value_of("write-order", SortOrder.from_json) if "write-order" in body else UNSORTED
        )
        properties = body.string_map("properties") if "properties" in body else {}
        location = body.optional_string("location")
        is_staged = flag_in(body, "stage-create")
    identifier = (*call.namespace, name)
    places = served.places_to_write(call.principal)
    place = location or served.place_of_new_table(call.principal, identifier)
    places.require(place, "the location")
    places.require_properties(properties)
    with reading_request():
        metadata = new_table_metadata(schema, spec, order, location=place, properties=properties)
    catalog = served.catalog_for(call.principal)
    if is_staged:
        staged = catalog.stage_table(identifier, metadata)
        return _table_answer(served, call.principal, staged.metadata, None)
    return loaded_answer(served, call.principal, catalog.create_table(identifier, metadata))


def load_table(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with a table's metadata, or that it is still the one that the client has."""
    mode, known = _mode(call), _tags_of_client(call)
    if known:
        unchanged = unchanged_answer(call, served.catalog.metadata_location(call.table))
        if unchanged is not None:
            return unchanged
    table = served.catalog.load_table(call.table)
    answer = loaded_answer(served, call.principal, table, mode=mode)
    if answer.headers["ETag"] in known:
        return HttpAnswer(304, headers=answer.headers)
    return answer


def unchanged_answer(call: Call, location: str) -> HttpAnswer | None:
    """Return the answer that the client has the table of a metadata file; None where it has not.

    The file is not read. Where its name may come again, only its content could tell.
    """
    mode = _mode(call)
    if not is_unique_name(location):
        return None
    tag = _etag(location, None, mode)
    return HttpAnswer(304, headers={"ETag": tag}) if tag in _tags_of_client(call) else None


def table_as_it_is(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with the path's table, which was changed before."""
    return loaded_answer(served, call.principal, served.catalog.load_table(call.table))


def table_of_the_body(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with a table that was made before."""
    table = served.catalog.load_table(call.table_in_body())
    return loaded_answer(served, call.principal, table)


def table_exists(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer whether there is a table."""
    if not served.catalog.table_exists(call.table):
        raise NoSuchTableError("there is no such table")
    return NOTHING


def drop_table(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Remove a table, and its files where the client asks for it."""
    if not call.flag("purgeRequested"):
        served.catalog.drop_table(call.table)
        return NOTHING
    table = served.catalog.load_table(call.table)
    kept = served.catalog_to_purge(call.principal, table).purge_table(call.table)
    if not kept:
        return NOTHING
    named = ", ".join(kept[:_NAMED])
    _LOG.warning("%d files of %s lie elsewhere and stay: %s", len(kept), shown(call.table), named)
    paths = " ".join(quote(each, safe="/:") for each in kept[:_NAMED])
    headers = {"X-Frazil-Kept-Files-Count": str(len(kept)), "X-Frazil-Kept-Files": paths}
    return replace(NOTHING, headers=headers)


def register_table(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Make a table of a metadata file that lies where the client may use files."""
    with call.reading_body() as body:
        name = table_name_of(body.string("name"))
        location = body.string("metadata-location")
        if flag_in(body, "overwrite"):
            raise HttpError(
                400, "UnsupportedOperationException", "a table that exists is not overwritten"
            )
    places = served.places_to_write(call.principal, as_of_now=True)
    places.require(location, "the metadata location")
    catalog = served.catalog_for(call.principal)
    try:
        metadata = read_metadata(catalog.io, location)
        places.require_metadata(metadata)
        if not call.principal.writes_everything:
            require_named_files(catalog.io, places, metadata.snapshots, of=None)
        table = catalog.register_table((*call.namespace, name), location)
    except (MissingFileError, InvalidFormatError):
        # What the file holds is not told: it may be any file.
        raise bad_request("the metadata location is no metadata file of a table") from None
    served.owners.forget()
    return loaded_answer(served, call.principal, table)


def rename_table(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Give a table another name."""
    body = call.body()
    old, new = identifier_of(body, "source"), identifier_of(body, "destination")
    for each in (old, new):
        served.require_write(call.principal, each[:-1])
    if not served.catalog.can(Capability.RENAMES):
        raise served.catalog.unsupported(Capability.RENAMES)
    served.catalog.rename_table(old, new)
    served.owners.forget()
    return NOTHING


def report_metrics(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Take a report of a scan or a commit into the log."""
    with call.reading_body() as body:
        kind, snapshot_id = body.string("report-type"), body.optional_long("snapshot-id")
        operation = body.optional_string("operation")
    if not served.catalog.table_exists(call.table):
        raise NoSuchTableError("there is no such table")
    report = {"report": kind, "table": shown(call.table), "snapshot": snapshot_id}
    _LOG.info("%s", json.dumps({**report, **({"operation": operation} if operation else {})}))
    return NOTHING


def load_credentials(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with the store's credentials, none unless they are to be given."""
    if not served.catalog.table_exists(call.table):
        raise NoSuchTableError("there is no such table")
    return ok({"storage-credentials": served.credentials_for(call.principal)})


def loaded_answer(
    served: ServedCatalog, principal: Principal, table: LoadedTable, *, mode: str = ALL
) -> HttpAnswer:
    """Return the answer that sends a table, with its ETag."""
    unique = is_unique_name(table.metadata_location)
    tag = _etag(table.metadata_location, None if unique else table.metadata, mode)
    key = (tag, mode)
    body = served.bodies.get(key)
    if body is None:
        metadata = table.metadata if mode == ALL else _with_referenced_snapshots(table.metadata)
        body = _metadata_text(metadata)
        served.bodies.put(key, body, len(body))
    return _table_answer(served, principal, body, table.metadata_location, headers={"ETag": tag})


def _table_answer(
    served: ServedCatalog,
    principal: Principal,
    metadata: TableMetadata | bytes,
    location: str | None,
    *,
    headers: dict[str, str] | None = None,
) -> HttpAnswer:
    text = metadata if isinstance(metadata, bytes) else _metadata_text(metadata)
    beside: dict[str, Any] = {"config": served.client_properties()}
    if location is not None:
        beside["metadata-location"] = location
    credentials = served.credentials_for(principal)
    if credentials:
        beside["storage-credentials"] = credentials
    # The metadata's text is made once; JSON's parser and writer need not see it again.
    begin = json.dumps(beside).encode().removesuffix(b"}")
    return HttpAnswer(200, begin + b', "metadata": ' + text + b"}", headers or {})


def _metadata_text(metadata: TableMetadata) -> bytes:
    """The metadata's JSON; the protocol has no null where a file has one for no snapshot."""
    if metadata.current_snapshot_id is not None:
        return metadata_to_bytes(metadata)
    fields = metadata_to_json(metadata)
    return json.dumps({key: each for key, each in fields.items() if each is not None}).encode()


def _with_referenced_snapshots(metadata: TableMetadata) -> TableMetadata:
    """The table with the snapshots alone that a branch or a tag is at."""
    wanted = {ref.snapshot_id for ref in metadata.refs.values()}
    wanted.add(metadata.current_snapshot_id or -1)
    kept = tuple(each for each_id, each in metadata.snapshots_at_hand.items() if each_id in wanted)
    return replace(metadata, snapshots=kept)


def _mode(call: Call) -> str:
    """Which snapshots the client wants."""
    mode = call.query.get("snapshots", ALL)
    if mode not in (ALL, REFS):
        raise bad_request("snapshots must be all or refs")
    return mode


def _tags_of_client(call: Call) -> set[str]:
    """The tags that the client has."""
    header = call.headers.get("if-none-match", "")
    return {each.strip().removeprefix("W/") for each in header.split(",") if each.strip()}


def _etag(location: str, metadata: TableMetadata | None, mode: str) -> str:
    """The tag of what an answer holds; of a file whose name may come again, with its table."""
    parts = [location, mode]
    if metadata is not None:
        parts += [str(metadata.table_uuid), str(metadata.last_updated_ms)]
    return f'"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}"'
