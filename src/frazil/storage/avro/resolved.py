"""The Avro schema of a container as its writer stated it, made plain and checked.

Writers nest and repeat types, and bytes from a store may be anything. So references become copies
under fresh names, and what would let a few bytes stand for endless records is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from frazil.errors import InvalidManifestError

_PRIMITIVES: Final[Mapping[str, int]] = {
    "null": 0,
    "boolean": 1,
    "int": 1,
    "long": 1,
    "float": 4,
    "double": 8,
    "bytes": 1,
    "string": 1,
}
"""The fewest bytes that a value of each takes."""
_MOST_NODES: Final = 100_000
_DEEPEST: Final = 64
_LARGEST_FIXED: Final = 1 << 20
_LOGICAL: Final = ("logicalType", "precision", "scale", "adjust-to-utc")
_KEPT: Final = ("type", "size", "symbols", *_LOGICAL)


def resolve_schema(schema_text: bytes, *, file: str) -> dict[str, Any]:
    """The schema of a container's records, without references.

    Raises InvalidManifestError also where a few bytes could stand for endless records.
    """
    try:
        schema: dict[str, Any] = _Resolver().resolve(json.loads(schema_text))
        if kind_of(schema) != "record":
            raise ValueError("it is not a record")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidManifestError(
            f"the Avro schema is malformed: {str(error) or type(error).__name__}", file=file
        ) from error
    return schema


def kind_of(kind: Any) -> Any:
    """The name of a type."""
    return kind["type"] if isinstance(kind, dict) else kind


def physical(kind: Any) -> Any:
    """A type without its logical type: the decoders then yield the stored value."""
    if isinstance(kind, list):
        return [physical(branch) for branch in kind]
    if isinstance(kind, str):
        return kind
    out = {key: value for key, value in kind.items() if key not in _LOGICAL}
    if "fields" in out:
        out["fields"] = [{**f, "type": physical(f["type"])} for f in out["fields"]]
    for key in ("items", "values"):
        if key in out:
            out[key] = physical(out[key])
    return out["type"] if set(out) == {"type"} else out


@dataclass(slots=True)
class _Resolver:
    named: dict[str, Any] = field(default_factory=dict)
    open_types: list[str] = field(default_factory=list)
    nodes: int = 0
    types: int = 0

    def resolve(self, schema: Any) -> Any:
        self.nodes += 1
        if self.nodes > _MOST_NODES or len(self.open_types) > _DEEPEST:
            raise ValueError("it nests too deeply")
        if isinstance(schema, list):
            return [self.resolve(branch) for branch in schema]
        if isinstance(schema, str):
            return schema if schema in _PRIMITIVES else self.resolve(self._named_type(schema))
        kind = schema["type"]
        if not isinstance(kind, str) or kind in self.named:
            return self.resolve(kind)
        out = {key: schema[key] for key in _KEPT if key in schema}
        match kind:
            case "record" | "error":
                out |= {"type": "record", "fields": self._fields(schema)}
            case "array" | "map":
                key = "items" if kind == "array" else "values"
                out[key] = self.resolve(schema[key])
                if _least_bytes(out[key]) == 0:
                    raise ValueError("the items of an array or map take no bytes")
            case "fixed":
                size = schema["size"]
                if not isinstance(size, int) or not 0 <= size <= _LARGEST_FIXED:
                    raise ValueError(f"a fixed type has the size {size!r}")
            case "enum":
                out["symbols"] = list(schema["symbols"])
            case _ if kind not in _PRIMITIVES:
                raise ValueError(f"the type {kind[:80]!r} is not known")
        if kind in ("record", "error", "fixed", "enum"):
            self.named[str(schema.get("name"))] = schema
            self.types += 1
            out["name"] = f"type{self.types}"
        return kind if set(out) == {"type"} else out

    def _named_type(self, name: str) -> Any:
        found = self.named.get(name) or self.named.get(name.rpartition(".")[2])
        if found is None:
            raise ValueError(f"the type {name[:80]!r} is not known")
        return found

    def _fields(self, schema: Any) -> list[dict[str, Any]]:
        name = str(schema.get("name"))
        if name in self.open_types:
            raise ValueError(f"the type {name[:80]!r} holds itself")
        self.named[name] = schema
        self.open_types.append(name)
        fields = [
            {
                "name": str(each["name"]),
                **({"field-id": each["field-id"]} if "field-id" in each else {}),
                "type": self.resolve(each["type"]),
            }
            for each in schema["fields"]
        ]
        self.open_types.pop()
        return fields


def _least_bytes(kind: Any) -> int:
    """The fewest bytes that a value of a type takes."""
    match kind_of(kind):
        case "record":
            return sum(_least_bytes(each["type"]) for each in kind["fields"])
        case "fixed":
            return int(kind["size"])
        case str() as name:
            return _PRIMITIVES.get(name, 1)
    return 1
