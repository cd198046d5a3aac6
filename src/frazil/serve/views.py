"""Requests about views."""

from __future__ import annotations

from collections.abc import Iterable

from frazil.catalog.metadata_files import read_view_metadata
from frazil.catalog.protocol import LoadedView
from frazil.errors import InvalidFormatError, MissingFileError, NoSuchViewError
from frazil.format.schema import Schema
from frazil.format.views import (
    AddViewVersion,
    SqlRepresentation,
    ViewVersion,
    check_view_requirements,
    view_metadata_to_json,
    view_requirement_from_json,
    view_update_from_json,
    view_version_from_json,
)
from frazil.serve.answers import NOTHING, HttpAnswer, HttpError, bad_request, ok
from frazil.serve.calls import Call, identifier_of, names_answer, reading_request, table_name_of
from frazil.serve.commits import commit_again
from frazil.serve.service import ServedCatalog


def list_views(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with the views of a namespace."""
    return names_answer(call, served.catalog.list_views(call.namespace))


def create_view(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Make a view."""
    with call.reading_body() as body:
        name = table_name_of(body.string("name"))
        schema = body.value_of("schema", Schema.from_json)
        version = view_version_from_json(body.object("view-version"))
        properties = body.string_map("properties") if "properties" in body else {}
        location = body.optional_string("location")
    _require_sql([version])
    identifier = (*call.namespace, name)
    places = served.places_to_write(call.principal)
    place = location or served.catalog.default_view_location(identifier)
    places.require(place, "the location")
    places.require_properties(properties)
    catalog = served.catalog_for(call.principal)
    made = catalog.create_view(identifier, schema, version, location=place, properties=properties)
    return _view_answer(made)


def load_view(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with a view's metadata."""
    return _view_answer(served.catalog.load_view(call.table))


def view_of_the_body(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with a view that was made before."""
    return _view_answer(served.catalog.load_view(call.table_in_body()))


def view_exists(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer whether there is a view."""
    if not served.catalog.view_exists(call.table):
        raise NoSuchViewError("there is no such view")
    return NOTHING


def replace_view(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Commit to a view."""
    body, name = call.body(), call.table
    if "identifier" in body and identifier_of(body, "identifier") != name:
        raise bad_request("the body names another view than the path")
    with reading_request():
        wanted = body.array("requirements") if "requirements" in body else []
        requirements = tuple(view_requirement_from_json(each) for each in wanted)
        updates = tuple(view_update_from_json(each) for each in body.array("updates"))
    _require_sql([each.view_version for each in updates if isinstance(each, AddViewVersion)])
    catalog = served.catalog
    views = () if call.principal.writes_everything else (catalog.load_view(name),)
    served.places_to_write(call.principal, *views).require_updates(updates)
    catalog = served.catalog_for(call.principal, *views)

    def check() -> None:
        check_view_requirements(catalog.load_view(name).metadata, requirements)

    return _view_answer(
        commit_again(lambda: catalog.commit_view(name, requirements, updates), check)
    )


def drop_view(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Remove a view."""
    served.catalog.drop_view(call.table)
    return NOTHING


def register_view(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Make a view of a metadata file that lies where the client may use files."""
    with call.reading_body() as body:
        name = table_name_of(body.string("name"))
        location = body.string("metadata-location")
    places = served.places_to_write(call.principal, as_of_now=True)
    places.require(location, "the metadata location")
    catalog = served.catalog_for(call.principal)
    try:
        metadata = read_view_metadata(catalog.io, location)
        places.require(metadata.location, "the view's location")
        places.require_properties(metadata.properties)
        _require_sql(metadata.versions)
        view = catalog.register_view((*call.namespace, name), location)
    except (MissingFileError, InvalidFormatError):
        # What the file holds is not told: it may be any file.
        raise bad_request("the metadata location is no metadata file of a view") from None
    served.owners.forget()
    return _view_answer(view)


def rename_view(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Give a view another name."""
    body = call.body()
    old, new = identifier_of(body, "source"), identifier_of(body, "destination")
    for each in (old, new):
        served.require_write(call.principal, each[:-1])
    served.catalog.rename_view(old, new)
    served.owners.forget()
    return NOTHING


def _require_sql(versions: Iterable[ViewVersion]) -> None:
    """Refuse what the protocol cannot send back: it has no representation but SQL."""
    for version in versions:
        for each in version.representations:
            if not isinstance(each, SqlRepresentation):
                message = f"a view has SQL here, not a representation of the type {each.type!r}"
                raise HttpError(400, "UnsupportedOperationException", message)


def _view_answer(view: LoadedView) -> HttpAnswer:
    metadata = view_metadata_to_json(view.metadata)
    return ok({"metadata-location": view.metadata_location, "metadata": metadata, "config": {}})
