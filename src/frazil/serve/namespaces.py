"""Requests about namespaces."""

from __future__ import annotations

from typing import Any, Final

from frazil.catalog.identifiers import Identifier
from frazil.catalog.protocol import Capability
from frazil.errors import NoSuchNamespaceError
from frazil.serve.answers import NOTHING, HttpAnswer, HttpError, bad_request, forbidden, ok
from frazil.serve.calls import Call, checked_namespace, namespace_of, page_of, reading_request
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
    below = served.catalog.list_namespaces(parent)
    seen = [each for each in below if call.principal.may_see(each)]
    page, more = page_of(call, seen, list)
    return ok({"namespaces": page, **more})


def create_namespace(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Make a namespace."""
    body = call.body()
    with reading_request():
        levels = body.strings("namespace")
        properties = body.string_map("properties") if "properties" in body else {}
    namespace = checked_namespace(levels)
    served.require_write(call.principal, namespace)
    _check_properties(served, call.principal, properties)
    served.catalog.create_namespace(namespace, properties)
    held = served.catalog.load_namespace_properties(namespace)
    return ok({"namespace": list(namespace), "properties": held})


def created_namespace(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with a namespace that was made before."""
    body = call.body()
    with reading_request():
        namespace = checked_namespace(body.strings("namespace"))
    served.require_write(call.principal, namespace)
    held = served.catalog.load_namespace_properties(namespace)
    return ok({"namespace": list(namespace), "properties": held})


def load_namespace(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with a namespace's properties."""
    properties = served.catalog.load_namespace_properties(call.namespace)
    return ok({"namespace": list(call.namespace), "properties": properties})


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
    body = call.body()
    with reading_request():
        removals = body.strings("removals") if "removals" in body else ()
        updates = body.string_map("updates") if "updates" in body else {}
    both = sorted(set(removals) & updates.keys())
    if both:
        message = f"these properties are both set and removed: {', '.join(both)}"
        raise HttpError(422, "UnprocessableEntityException", message)
    _check_properties(served, call.principal, updates)
    if not served.catalog.can(Capability.NAMESPACE_PROPERTIES):
        raise served.catalog.unsupported(Capability.NAMESPACE_PROPERTIES)
    before = served.catalog.load_namespace_properties(call.namespace)
    wanted = list(dict.fromkeys(removals))
    served.catalog.update_namespace_properties(call.namespace, updates=updates, removals=wanted)
    answer: dict[str, Any] = {
        "updated": sorted(updates),
        "removed": [name for name in wanted if name in before],
        "missing": [name for name in wanted if name not in before],
    }
    return ok(answer)


def updated_properties(_served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer that properties were changed; which were missing then is not known any more."""
    body = call.body()
    with reading_request():
        removals = body.strings("removals") if "removals" in body else ()
        updates = body.string_map("updates") if "updates" in body else {}
    gone = list(dict.fromkeys(removals))
    return ok({"updated": sorted(updates), "removed": gone, "missing": []})


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
