"""Paths of the protocol: which there are, and how names become part of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from frazil.catalog.identifiers import Identifier, shown
from frazil.errors import ConfigurationError, ValidationError

_BELOW: Final = "/v1/{prefix}"
_NAMESPACE: Final = f"{_BELOW}/namespaces/{{namespace}}"
_TABLE: Final = f"{_NAMESPACE}/tables/{{table}}"
_VIEW: Final = f"{_NAMESPACE}/views/{{view}}"
_UNIT_SEPARATOR: Final = "%1F"
_OF_A_PATH: Final = "/%~:@!$&'()*+,;="

LIST_NAMESPACES: Final = f"GET {_BELOW}/namespaces"
CREATE_NAMESPACE: Final = f"POST {_BELOW}/namespaces"
LOAD_NAMESPACE: Final = f"GET {_NAMESPACE}"
NAMESPACE_EXISTS: Final = f"HEAD {_NAMESPACE}"
DROP_NAMESPACE: Final = f"DELETE {_NAMESPACE}"
UPDATE_NAMESPACE: Final = f"POST {_NAMESPACE}/properties"
LIST_TABLES: Final = f"GET {_NAMESPACE}/tables"
CREATE_TABLE: Final = f"POST {_NAMESPACE}/tables"
LOAD_TABLE: Final = f"GET {_TABLE}"
TABLE_EXISTS: Final = f"HEAD {_TABLE}"
UPDATE_TABLE: Final = f"POST {_TABLE}"
DROP_TABLE: Final = f"DELETE {_TABLE}"
REGISTER_TABLE: Final = f"POST {_NAMESPACE}/register"
UNREGISTER_TABLE: Final = f"POST {_TABLE}/unregister"
RENAME_TABLE: Final = f"POST {_BELOW}/tables/rename"
REPORT_METRICS: Final = f"POST {_TABLE}/metrics"
LOAD_CREDENTIALS: Final = f"GET {_TABLE}/credentials"
SIGN_REQUEST: Final = f"POST {_TABLE}/sign"
COMMIT_TRANSACTION: Final = f"POST {_BELOW}/transactions/commit"
LIST_VIEWS: Final = f"GET {_NAMESPACE}/views"
CREATE_VIEW: Final = f"POST {_NAMESPACE}/views"
LOAD_VIEW: Final = f"GET {_VIEW}"
VIEW_EXISTS: Final = f"HEAD {_VIEW}"
UPDATE_VIEW: Final = f"POST {_VIEW}"
DROP_VIEW: Final = f"DELETE {_VIEW}"
REGISTER_VIEW: Final = f"POST {_NAMESPACE}/register-view"
RENAME_VIEW: Final = f"POST {_BELOW}/views/rename"

DEFAULT_ENDPOINTS: Final = frozenset(
    {
        *(LIST_NAMESPACES, CREATE_NAMESPACE, LOAD_NAMESPACE, DROP_NAMESPACE, UPDATE_NAMESPACE),
        *(LIST_TABLES, CREATE_TABLE, LOAD_TABLE, UPDATE_TABLE, DROP_TABLE, REGISTER_TABLE),
        *(REPORT_METRICS, RENAME_TABLE, COMMIT_TRANSACTION),
    }
)
"""What the protocol says of a server that names no endpoints."""

VIEW_ENDPOINTS: Final = frozenset(
    {LIST_VIEWS, CREATE_VIEW, LOAD_VIEW, UPDATE_VIEW, DROP_VIEW, RENAME_VIEW}
)
"""What such a server has beside them where ``view-endpoints-supported`` is true."""


@dataclass(frozen=True, slots=True)
class Routes:
    """Paths below a server's address, of one prefix and separator of namespaces.

    Attributes:
        prefix: what the server wants before all paths; empty for nothing.
        separator: between levels of a namespace, not encoded.
    """

    prefix: str = ""
    separator: str = "\x1f"

    @classmethod
    def of(cls, prefix: str | None, separator: str | None) -> Routes:
        """Return the routes that a server's properties mean."""
        decoded = unquote(_UNIT_SEPARATOR if separator is None else separator)
        if not decoded:
            raise ConfigurationError("namespace-separator must not be empty")
        return cls((prefix or "").strip("/"), decoded)

    def path(self, *parts: str) -> str:
        """Return the path of encoded parts below the prefix."""
        start = ("v1", quote(self.prefix, safe=_OF_A_PATH)) if self.prefix else ("v1",)
        return "/".join((*start, *parts))

    def namespaces(self) -> str:
        """Return the path of all namespaces."""
        return self.path("namespaces")

    def namespace(self, levels: Identifier, *below: str) -> str:
        """Return the path of a namespace, or of something below it."""
        self.joined_levels(levels)
        encoded = quote(self.separator, safe="").join(_segment(level) for level in levels)
        return self.path("namespaces", encoded, *below)

    def tables(self, levels: Identifier) -> str:
        """Return the path of a namespace's tables."""
        return self.namespace(levels, "tables")

    def table(self, name: Identifier, *below: str) -> str:
        """Return the path of a table, or of something below it."""
        return self.namespace(name[:-1], "tables", _segment(name[-1]), *below)

    def views(self, levels: Identifier) -> str:
        """Return the path of a namespace's views."""
        return self.namespace(levels, "views")

    def view(self, name: Identifier) -> str:
        """Return the path of a view."""
        return self.namespace(name[:-1], "views", _segment(name[-1]))

    def joined_levels(self, levels: Identifier) -> str:
        """Return a namespace as one text that is not encoded."""
        if any(self.separator in level for level in levels):
            raise ValidationError(
                f"a level of the namespace {shown(levels)} holds {self.separator!r}, which this "
                f"server takes for the separator of levels: choose another name"
            )
        return self.separator.join(levels)


def _segment(name: str) -> str:
    # Clients take a segment of dots alone for a step in the path.
    return name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="")
