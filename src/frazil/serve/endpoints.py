"""The endpoints of the protocol: paths, what they need, and who works on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from frazil.catalog.identifiers import Identifier
from frazil.catalog.protocol import Capability
from frazil.serve import commits, namespaces, tables, views
from frazil.serve.answers import NOTHING, HttpAnswer, HttpError, ok, with_bare_model
from frazil.serve.calls import Call, decode_part, namespace_of, table_name_of
from frazil.serve.scans import planning
from frazil.serve.service import ServedCatalog

_ROUTES_KEPT: Final = 1000

Handler: TypeAlias = Callable[[ServedCatalog, Call], HttpAnswer]


def no_content(_served: ServedCatalog, _call: Call) -> HttpAnswer:
    """Answer that it was done."""
    return NOTHING


_NAMESPACES: Final = "namespaces"
_NAMESPACE: Final = "namespaces/{namespace}"
_TABLES: Final = f"{_NAMESPACE}/tables"
_TABLE: Final = f"{_NAMESPACE}/tables/{{table}}"
_VIEWS: Final = f"{_NAMESPACE}/views"
_VIEW: Final = f"{_NAMESPACE}/views/{{view}}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method on a path.

    Attributes:
        method: of HTTP.
        template: the path after ``/v1/{prefix}/``, with ``{namespace}`` and others in it.
        handler: works on a request.
        statuses: of errors that the specification has for it, beside those of all endpoints.
        again: answers where the request was carried out before, by the catalog as it is now.
        changes: whether it changes something.
        needs: what the catalog must be able to do.
        listed: whether clients are told that the server has it.
        bare: statuses whose errors the specification has without their wrapper.
    """

    method: str
    template: str
    handler: Handler
    statuses: frozenset[int] = field(default=frozenset({404}))
    again: Handler = no_content
    changes: bool = False
    needs: Capability | None = None
    listed: bool = True
    bare: frozenset[int] = frozenset()

    @property
    def makes_tables(self) -> bool:
        """Whether an error may leave a change of a table or view that has taken place."""
        return self.changes and self.handler in (
            commits.commit_table,
            commits.commit_transaction,
            tables.create_table,
            views.create_view,
            views.replace_view,
        )

    def as_specified(self, answer: HttpAnswer) -> HttpAnswer:
        """Return the answer in the form that the specification has for this endpoint."""
        is_bare = answer.error is not None and answer.status in self.bare
        return with_bare_model(answer) if is_bare else answer

    def is_offered(self, served: ServedCatalog) -> bool:
        """Whether the server can do it for its catalog."""
        if self.changes and not served.can_change():
            return False
        return self.needs is None or served.catalog.can(self.needs)


def _config(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with what clients need to know of the server."""
    wanted = call.query.get("warehouse")
    known = {served.catalog.name, served.warehouse, served.catalog.properties.get("warehouse")}
    if wanted and wanted not in known and wanted.rstrip("/") not in known:
        raise HttpError(
            404,
            "NoSuchWarehouseException",
            f"there is no such warehouse: this server has {served.catalog.name!r} alone",
        )
    endpoints = [
        f"{each.method} /v1/{'' if each.template == 'config' else '{prefix}/'}{each.template}"
        for each in ENDPOINTS
        if each.listed and each.is_offered(served)
    ]
    answer = {"defaults": served.client_properties(), "overrides": {}, "endpoints": endpoints}
    if served.requests is not None:
        answer["idempotency-key-lifetime"] = f"PT{served.settings.key_minutes}M"
    return ok(answer)


def _of_views(
    method: str,
    template: str,
    handler: Handler,
    *statuses: int,
    again: Handler = no_content,
    changes: bool = False,
) -> Endpoint:
    """An endpoint of views; the specification has most of their errors without a wrapper."""
    bare = frozenset[int]() if handler is views.register_view else frozenset({404, 409})
    if handler is views.replace_view:
        bare |= frozenset({500, 502, 504})
    return Endpoint(
        method,
        template,
        handler,
        frozenset({404, *statuses}),
        again,
        changes=changes,
        needs=Capability.VIEWS,
        bare=bare,
    )


_PROPERTIES = Capability.NAMESPACE_PROPERTIES
_SEVERAL = Capability.MULTI_TABLE_COMMITS
ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    Endpoint("GET", "config", _config),
    Endpoint("GET", _NAMESPACES, namespaces.list_namespaces),
    Endpoint(
        "POST",
        _NAMESPACES,
        namespaces.create_namespace,
        frozenset({406, 409}),
        namespaces.created_namespace,
        changes=True,
    ),
    Endpoint("GET", _NAMESPACE, namespaces.load_namespace),
    Endpoint("HEAD", _NAMESPACE, namespaces.namespace_exists),
    Endpoint("DELETE", _NAMESPACE, namespaces.drop_namespace, frozenset({404, 409}), changes=True),
    Endpoint(
        "POST",
        f"{_NAMESPACE}/properties",
        namespaces.update_properties,
        frozenset({404, 406, 422}),
        namespaces.updated_properties,
        changes=True,
        needs=_PROPERTIES,
    ),
    Endpoint("GET", _TABLES, tables.list_tables),
    Endpoint(
        "POST",
        _TABLES,
        tables.create_table,
        frozenset({404, 409}),
        tables.table_of_the_body,
        changes=True,
    ),
    Endpoint("GET", _TABLE, tables.load_table),
    Endpoint("HEAD", _TABLE, tables.table_exists),
    Endpoint(
        "POST",
        _TABLE,
        commits.commit_table,
        frozenset({404, 409}),
        tables.table_as_it_is,
        changes=True,
    ),
    Endpoint("DELETE", _TABLE, tables.drop_table, changes=True),
    Endpoint(
        "POST",
        f"{_NAMESPACE}/register",
        tables.register_table,
        frozenset({404, 409}),
        tables.table_of_the_body,
        changes=True,
    ),
    Endpoint("GET", f"{_TABLE}/credentials", tables.load_credentials),
    Endpoint("POST", f"{_TABLE}/metrics", tables.report_metrics),
    Endpoint("POST", f"{_TABLE}/plan", planning.plan_scan, frozenset({404, 406})),
    Endpoint("GET", f"{_TABLE}/plan/{{plan-id}}", planning.no_such_plan, listed=False),
    Endpoint("DELETE", f"{_TABLE}/plan/{{plan-id}}", planning.no_such_plan, listed=False),
    Endpoint("POST", f"{_TABLE}/tasks", planning.fetch_tasks),
    Endpoint(
        "POST",
        "tables/rename",
        tables.rename_table,
        frozenset({404, 406, 409}),
        changes=True,
        needs=Capability.RENAMES,
    ),
    Endpoint(
        "POST",
        "transactions/commit",
        commits.commit_transaction,
        frozenset({404, 409}),
        changes=True,
        needs=_SEVERAL,
    ),
    _of_views("GET", _VIEWS, views.list_views),
    _of_views("POST", _VIEWS, views.create_view, 409, again=views.view_of_the_body, changes=True),
    _of_views("GET", _VIEW, views.load_view),
    _of_views("HEAD", _VIEW, views.view_exists),
    _of_views("POST", _VIEW, views.replace_view, 409, again=views.load_view, changes=True),
    _of_views("DELETE", _VIEW, views.drop_view, changes=True),
    _of_views(
        "POST",
        f"{_NAMESPACE}/register-view",
        views.register_view,
        409,
        again=views.view_of_the_body,
        changes=True,
    ),
    _of_views("POST", "views/rename", views.rename_view, 406, 409, changes=True),
)


@lru_cache(maxsize=_ROUTES_KEPT)
def route_of(method: str, path: str, catalog: str) -> tuple[Endpoint, Identifier, str]:
    """Return the endpoint of a request, with the namespace and the name in its path.

    Args:
        method: of HTTP.
        path: still percent-encoded, so that a name may hold a slash.
        catalog: the name that clients may have for the prefix.

    Raises:
        HttpError: there is none, or the names in the path are malformed.
    """
    version, _, rest = path.removeprefix("/").partition("/")
    parts = rest.split("/")
    fits = [] if version != "v1" else _fitting_endpoints(parts)
    if version == "v1" and not fits and len(parts) > 1 and decode_part(parts[0]) == catalog:
        parts = parts[1:]
        fits = _fitting_endpoints(parts)
    if not fits:
        raise HttpError(404, "NoSuchEndpointException", "this server has no such endpoint")
    for endpoint in fits:
        if endpoint.method == method:
            return _route(endpoint, parts)
    allowed = ", ".join(sorted({each.method for each in fits}))
    raise HttpError(
        405, "MethodNotAllowedException", f"allowed here: {allowed}", {"Allow": allowed}
    )


def _fitting_endpoints(parts: list[str]) -> list[Endpoint]:
    return [each for each in ENDPOINTS if _fits(each.template.split("/"), parts)]


def _fits(template: list[str], parts: list[str]) -> bool:
    return len(template) == len(parts) and all(
        word.startswith("{") or word == part for word, part in zip(template, parts, strict=True)
    )


def _route(endpoint: Endpoint, parts: list[str]) -> tuple[Endpoint, Identifier, str]:
    words = zip(endpoint.template.split("/"), parts, strict=True)
    named = {word: decode_part(part) for word, part in words if word.startswith("{")}
    namespace = namespace_of(named["{namespace}"]) if "{namespace}" in named else ()
    given = named.get("{table}", named.get("{view}"))
    return endpoint, namespace, "" if given is None else table_name_of(given)
