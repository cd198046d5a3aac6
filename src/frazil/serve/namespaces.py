"""Requests about namespaces."""

from __future__ import annotations

from typing import Final

from frazil.catalog.identifiers import Identifier
from frazil.catalog.protocol import Capability
from frazil.errors import NoSuchNamespaceError
from frazil.serve.answers import NOTHING, HttpAnswer, HttpError, bad_request, forbidden, ok
from frazil.serve.calls import Call, checked_namespace, namespace_of, page_of
from frazil.serve.rights.access import Principal
from frazil.serve.service import ServedCatalog

_LOCATION: Final = "location"
_LONGEST_KEY: Final = 255
_LONGEST_VALUE: Final = 1000


def list_namespaces(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with the namespaces below one, those alone that the client may see."""
    text = call.query.get("parent", "")
    parent: Identifier = namespace_of(text) if text else ()
    if parent and not call.principal.may_see(parent):
        raise forbidden("this token may not read that namespace")
    may_see = call.principal.may_see
    seen = [each for each in served.catalog.list_namespaces(parent) if may_see(each)]
    page, more = page_of(call, seen, list)
    return ok({"namespaces": page, **more})


def create_namespace(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Make a namespace."""
    with call.reading_body() as body:
        levels = body.strings("namespace")
        properties = body.string_map("properties") if "properties" in body else {}
    namespace = checked_namespace(levels)
    served.require_write(call.principal, namespace)
    _check_properties(served, call.principal, properties)
    served.catalog.create_namespace(namespace, properties)
    return _namespace_answer(served, namespace)


def created_namespace(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with a namespace that was made before."""
    with call.reading_body() as body:
        namespace = checked_namespace(body.strings("namespace"))
    served.require_write(call.principal, namespace)
    return _namespace_answer(served, namespace)


def load_namespace(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with a namespace's properties."""
    return _namespace_answer(served, call.namespace)


def namespace_exists(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer whether there is a namespace."""
    if not served.catalog.namespace_exists(call.namespace):
        raise NoSuchNamespaceError("there is no such namespace")
    return NOTHING


def drop_namespace(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Remove an empty namespace."""
    served.catalog.drop_namespace(call.namespace)
    return NOTHING


def update_properties(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Set and remove properties of a namespace."""
    removals, updates = _changes_of(call)
    both = sorted(set(removals) & updates.keys())
    if both:
        message = f"these properties are both set and removed: {', '.join(both)}"
        raise HttpError(422, "UnprocessableEntityException", message)
    _check_properties(served, call.principal, updates)
    if not served.catalog.can(Capability.NAMESPACE_PROPERTIES):
        raise served.catalog.unsupported(Capability.NAMESPACE_PROPERTIES)
    before = served.catalog.load_namespace_properties(call.namespace)
    served.catalog.update_namespace_properties(call.namespace, updates=updates, removals=removals)
    removed = [name for name in removals if name in before]
    missing = [name for name in removals if name not in before]
    return ok({"updated": sorted(updates), "removed": removed, "missing": missing})


def updated_properties(_served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer that properties were changed; which were missing then is not known any more."""
    removals, updates = _changes_of(call)
    return ok({"updated": sorted(updates), "removed": removals, "missing": []})


def _namespace_answer(served: ServedCatalog, namespace: Identifier) -> HttpAnswer:
    properties = served.catalog.load_namespace_properties(namespace)
    return ok({"namespace": list(namespace), "properties": properties})


def _changes_of(call: Call) -> tuple[list[str], dict[str, str]]:
    """The properties that a body removes, each once, and those that it sets."""
    with call.reading_body() as body:
        removals = body.strings("removals") if "removals" in body else ()
        updates = body.string_map("updates") if "updates" in body else {}
    return list(dict.fromkeys(removals)), updates


def _check_properties(
    served: ServedCatalog, principal: Principal, properties: dict[str, str]
) -> None:
    """Refuse what a database cannot keep, and a location that the client may not use."""
    for key, value in properties.items():
        if not key or len(key) > _LONGEST_KEY or len(value) > _LONGEST_VALUE:
            raise bad_request(
                f"a property's name has 1 to {_LONGEST_KEY} characters, its value at most "
                f"{_LONGEST_VALUE}"
            )
    if _LOCATION in properties:
        served.places_to_write(principal).require(properties[_LOCATION], "the location")
