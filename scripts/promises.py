"""What a release promises to keep: every public name and how it is used, one line a name.

    promises.py         write tests/docs/promises.txt
    promises.py --check print the lines that are gone, new or other, and fail where there are some

`docs/reference/promises.md` says what the list means. A line is what the name is of, the name, two
spaces, and how it is used. Nothing is run: all of it is read from classes, signatures and tables.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, cached_property
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

import click

import frazil
from frazil.catalog.config import _COMMON_PROPERTIES
from frazil.catalog.kinds import _OWN, catalog_class
from frazil.cli.app import main as command_line
from frazil.format.properties.kinds import Property
from frazil.format.properties.table import COLUMN_PROPERTIES, PROPERTIES
from frazil.format.schema import Schema
from frazil.format.types import IcebergType, ListType, MapType, StructType
from frazil.format.views import properties as of_views
from frazil.spark.attached.dataframes import java_options
from frazil.spark.changes.columns import CHANGELOG_COLUMNS, ChangeType
from frazil.spark.changes.view import _SNAPSHOTS, _TIMES
from frazil.spark.files.projection import METADATA_COLUMNS
from frazil.spark.maintenance.compaction.options import _OF_DATA_FILES, _OF_SIZES
from frazil.spark.metadata_frames.frames import MetadataFrames
from frazil.spark.procedures.call import PROCEDURES
from frazil.spark.sql.functions.calls import PARAMETERS
from frazil.spark.sql.statements.listing import CHANGES, STATEMENTS
from frazil.spark.stream.source.options import JAVA_OPTIONS
from frazil.spark.write.options import _OPTIONS, _OTHER_OPTIONS
from frazil.storage.caches import CACHE_SIZES
from frazil.storage.stores.remote_options import storage_property_names
from frazil.table.inspect import schemas

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = ROOT / "src" / "frazil"
PROMISES: Final = ROOT / "tests" / "docs" / "promises.txt"
COMMAND: Final = ".venv/bin/python scripts/promises.py"

Lines: TypeAlias = Iterator[tuple[str, str]]
"""Names with what they are of before them, and how each is used."""

MADE_BY_USERS: Final = {"Batch", "NestedField", "PartitionSpec", "Retention", "Schema", "SortOrder"}
"""Classes whose objects a user makes, beside the types; those of others are only returned."""
FOR_CATALOGS: Final = (
    "frazil.catalog.kinds.register_catalog",
    "frazil.catalog.pointer.catalog.PointerCatalog",
    "frazil.catalog.pointer.record_catalog.RecordCatalog",
    "frazil.catalog.protocol.Catalog",
)
"""What a kind of catalog of another package is made of; it is imported from there."""

_PROTOCOLS: Final = ("__call__", "__contains__", "__enter__", "__getitem__", "__iter__", "__len__")
_REFERENCE: Final = ROOT / "docs" / "reference" / "api.md"
_SETTING: Final = re.compile(r"^\w+_SETTING: Final = \"([^\"]+)\"", re.MULTILINE)
_VARIABLE: Final = re.compile(r"(?:FRAZIL|PYICEBERG)_[A-Z_]+")
_KEYWORDS: Final = re.compile(r"Unpack\[(\w+)\]")


def promises() -> dict[str, str]:
    """Every name that is promised, and how it is used."""
    found = dict(chain.from_iterable(part() for part in PARTS))
    return dict(sorted(found.items()))


def as_text(found: Mapping[str, str]) -> str:
    """The list as it is kept."""
    return "".join(f"{name}  {use}".rstrip() + "\n" for name, use in found.items())


def from_text(text: str) -> dict[str, str]:
    """The list of a text."""
    return {name: use for name, _, use in (line.partition("  ") for line in text.splitlines())}


def differences(kept: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What is gone, new or other, a line or two each; empty where all is as it was kept."""
    gone = [f"gone:  {name}  {kept[name]}".rstrip() for name in kept if name not in now]
    new = [f"new:   {name}  {now[name]}".rstrip() for name in now if name not in kept]
    both = [name for name in kept if name in now and kept[name] != now[name]]
    return gone + new + [f"other: {name}\n  was  {kept[name]}\n  is   {now[name]}" for name in both]


# -- Python ----------------------------------------------------------------------------------------


def _names_of_python() -> Lines:
    for name in sorted({*frazil.__all__, *frazil._HOMES}):
        found = getattr(frazil, name)
        if isinstance(found, ModuleType):
            yield f"python frazil.{name}", "module"
            yield from _names_of_a_module(found, f"{name}.")
        elif inspect.isclass(found):
            yield from _names_of_a_class(found, name)
        else:
            use = _signature(found) if callable(found) else "text"
            yield f"python frazil.{name}", use
    for path in re.findall(r"^::: (frazil\.\w+\.\S+)$", _REFERENCE.read_text(), re.MULTILINE):
        found = _at(path)
        name = path.rpartition(".")[2]
        if isinstance(found, ModuleType):
            yield from _names_of_a_module(found, "")
        elif inspect.isclass(found) and not typing.is_typeddict(found):
            yield from _names_of_a_class(found, name)
        elif inspect.isfunction(found):
            yield f"python {path}", _signature(found)


def _names_for_catalogs() -> Lines:
    for path in FOR_CATALOGS:
        found = _at(path)
        if inspect.isclass(found):
            yield from _names_of_a_class(found, path, kind="catalogs")
        else:
            yield f"catalogs {path}", _signature(found)


def _at(path: str) -> Any:
    try:
        return import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(import_module(module), name)


def _names_of_a_module(module: ModuleType, before: str) -> Lines:
    """Of what it lists, or of the classes and functions that it has."""
    own = [name for name, each in vars(module).items() if _is_of(module, each)]
    for name in getattr(module, "__all__", own):
        found = getattr(module, name)
        if name.startswith("_"):
            continue
        if inspect.isclass(found):
            yield from _names_of_a_class(found, before + name, is_made=before == "types.")
        elif inspect.isfunction(found):
            yield f"python {before}{name}", _signature(found)
        else:
            yield f"python {before}{name}", "value"


def _is_of(module: ModuleType, found: object) -> bool:
    is_named = inspect.isclass(found) or inspect.isfunction(found)
    return is_named and getattr(found, "__module__", "") == module.__name__


def _names_of_a_class(
    found: type, name: str, *, is_made: bool = False, kind: str = "python"
) -> Lines:
    bases = [base.__name__ for base in found.__bases__ if issubclass(found, Exception)]
    is_made = (is_made or name in MADE_BY_USERS) and not inspect.isabstract(found)
    yield f"{kind} {name}", f"class{_signature(found) if is_made else _in_parentheses(bases)}"
    if issubclass(found, Enum):
        yield from ((f"{kind} {name}.{each.name}", repr(each.value)) for each in found)
    of_data = {field.name for field in fields(found)} if is_dataclass(found) else set()
    for member in sorted({*dir(found), *of_data}):
        if (member.startswith("_") and member not in _PROTOCOLS) or not _is_ours(found, member):
            continue
        value = inspect.getattr_static(found, member, None)
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(function):
            yield f"{kind} {name}.{member}", _signature(function)
        elif member in of_data or isinstance(value, property | cached_property):
            yield f"{kind} {name}.{member}", "attribute"


def _is_ours(found: type, member: str) -> bool:
    """Whether a class of Frazil brings a member: what Python's own have is not ours to promise."""
    owner = next((each for each in found.__mro__ if member in vars(each)), found)
    return owner.__module__.startswith("frazil")


def _signature(function: Callable[..., Any]) -> str:
    """How it is called: names, kinds and defaults; keywords of a `TypedDict` one by one."""
    found = inspect.signature(function)
    parts, is_keyword = [], False
    for parameter in found.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        match parameter.kind:
            case parameter.VAR_KEYWORD:
                known = _KEYWORDS.search(str(parameter.annotation))
                names = _keywords(known[1]) if known else ()
                star = [] if is_keyword or not names else ["*"]
                parts += [*star, *(f"{name}=…" for name in names)] or [f"**{parameter.name}"]
                continue
            case parameter.VAR_POSITIONAL:
                is_keyword = True
            case parameter.KEYWORD_ONLY if not is_keyword:
                is_keyword = True
                parts.append("*")
            case _:
                pass
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is parameter.empty else f"={_default(parameter.default)}"
        parts.append(f"{star}{parameter.name}{default}")
    return _in_parentheses(parts) or "()"


def _default(value: object) -> str:
    text = repr(value.value if isinstance(value, Enum) else value)
    return "…" if " at 0x" in text else text


@cache
def _keywords(name: str) -> tuple[str, ...]:
    """The keys of the class of keywords that has a name: names of classes are used once."""
    begins = f"\nclass {name}("
    (path,) = (path for path in SOURCES.rglob("*.py") if begins in path.read_text())
    module = ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts)
    return tuple(
        sorted(getattr(import_module(module.removesuffix(".__init__")), name).__annotations__)
    )


def _in_parentheses(parts: Iterable[str]) -> str:
    text = ", ".join(parts)
    return f"({text})" if text else ""


# -- SQL -------------------------------------------------------------------------------------------


def _procedures() -> Lines:
    for name, each in PROCEDURES.items():
        takes = ", ".join(map(str, each.signature.parameters))
        yield f"procedure {name}", f"({takes}) -> {_columns(each.columns)}"


def _statements() -> Lines:
    yield from ((f"statement {words}", "") for words in CHANGES)
    yield from ((f"statement {each.words}", "") for each in STATEMENTS)


def _functions() -> Lines:
    for name, takes in PARAMETERS.items():
        yield f"function system.{name}", _in_parentheses(takes) or "()"


def _metadata_tables() -> Lines:
    nothing = StructType(())
    known: dict[str, StructType] = {
        "history": schemas.HISTORY,
        "metadata_log_entries": schemas.METADATA_LOG_ENTRIES,
        "snapshots": schemas.SNAPSHOTS,
        "refs": schemas.REFS,
        "manifests": schemas.MANIFESTS,
        "all_manifests": schemas.ALL_MANIFESTS,
        "partitions": schemas.partitions_struct(nothing),
    }
    for name in sorted(name for name in vars(MetadataFrames) if not name.startswith("_")):
        entries = name.endswith("entries")
        of_files = schemas.entries_struct if entries else schemas.files_struct
        shown = known.get(name) or of_files(Schema(), nothing)
        yield f"metadata-table {name}", _columns(shown)


def _columns_of_rows() -> Lines:
    yield from (
        (f"metadata-column {each.name}", _type(each.field_type)) for each in METADATA_COLUMNS
    )
    yield from ((f"change-column {name}", "") for name in CHANGELOG_COLUMNS)
    yield from ((f"change-type {each.value}", "") for each in ChangeType)


def _columns(struct: StructType) -> str:
    return ", ".join(
        f"{each.name}: {_type(each.field_type)}{'' if each.required else ' or null'}"
        for each in struct.fields
    )


def _type(kind: IcebergType) -> str:
    """A type without ids and comments."""
    match kind:
        case StructType():
            return f"struct<{_columns(kind)}>"
        case ListType():
            return f"list<{_type(kind.element_type)}>"
        case MapType():
            return f"map<{_type(kind.key_type)}, {_type(kind.value_type)}>"
        case _:
            return str(kind)


# -- options, properties, settings -----------------------------------------------------------------


def _options() -> Lines:
    module = ast.parse(inspect.getsource(java_options))
    for function in module.body:
        if isinstance(function, ast.FunctionDef) and function.name in (
            "read_choice",
            "write_choice",
        ):
            for name in _taken(function):
                yield f"option-of-{function.name.partition('_')[0]} {name}", ""
    yield from ((f"option-of-read {name}", "no effect") for name in java_options._READ_TUNING)
    yield from ((f"option-of-write {name}", "no effect") for name in java_options._WRITE_TUNING)
    yield from ((f"option-of-write {name}", "") for name in java_options._OVERWRITE_MODES)
    yield f"option-of-write {java_options._SNAPSHOT_PROPERTY}<name>", ""
    yield from ((f"option-of-write {name}", each.name) for name, each in _OPTIONS.items())
    yield from ((f"option-of-write {name}", "") for name in _OTHER_OPTIONS)
    yield from ((f"option-of-stream {name}", each) for name, each in JAVA_OPTIONS.items())
    yield from ((f"option-of-changelog {each}", "") for each in (*_SNAPSHOTS, *_TIMES))
    yield from ((f"option-of-rewrite_data_files {e.name}", _kind(e)) for e in _OF_DATA_FILES)
    yield from ((f"option-of-rewrite_position_delete_files {e.name}", _kind(e)) for e in _OF_SIZES)


def _taken(function: ast.FunctionDef) -> Iterator[str]:
    """The names of options that a function takes out of those that were given."""
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("take", "number", "flag"):
            yield from (arg.value for arg in call.args if isinstance(arg, ast.Constant))


def _table_properties() -> Lines:
    yield from ((f"table-property {name}", _kind(each)) for name, each in PROPERTIES.items())
    for column in COLUMN_PROPERTIES:
        yield f"table-property {column.prefix}<column>", column.kind.expected
    for each in vars(of_views).values():
        if isinstance(each, Property):
            yield f"view-property {each.name}", _kind(each)


def _kind(each: Property[Any]) -> str:
    default = "" if each.default is None else f"; {each.default} unless set"
    return each.kind.expected + default


def _catalog_properties() -> Lines:
    for kind in _OWN:
        found = catalog_class(kind, kind)
        yield f"catalog-type {kind}", ""
        yield from ((f"catalog-property {kind} {name}", "") for name in found.property_names or ())
        yield from ((f"catalog-property {kind} {p}<name>", "") for p in found.property_prefixes)
    for name in _COMMON_PROPERTIES:
        yield f"catalog-property every {name}", ""
    yield from ((f"catalog-property stores {name}", "") for name in storage_property_names())


def _session_settings() -> Lines:
    for path in SOURCES.rglob("*.py"):
        yield from ((f"session-setting {name}", "") for name in _SETTING.findall(path.read_text()))
    yield from ((f"session-setting frazil.{each.name}", "") for each in CACHE_SIZES.values())


def _environment_variables() -> Lines:
    for name in CACHE_SIZES:
        yield f"environment FRAZIL_CACHE_{name.upper()}_BYTES", ""
    for path in SOURCES.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if _VARIABLE.search(text) else ():
            is_name = isinstance(node, ast.Constant) and _VARIABLE.fullmatch(str(node.value))
            if is_name and node.value != "FRAZIL_CACHE_":
                rest = "<NAME>__<PROPERTY>" if node.value.endswith("__") else ""
                yield f"environment {node.value}{rest}", ""
    yield "environment _FRAZIL_COMPLETE", ""


# -- the command line ------------------------------------------------------------------------------


def _commands() -> Lines:
    yield from _parameters("frazil", command_line.params)
    for words, each in command_line.every_command().items():
        yield f"command frazil {words}", ""
        yield from _parameters(f"frazil {words}", each.params)


def _parameters(words: str, found: Iterable[click.Parameter]) -> Lines:
    for each in found:
        choices = "|".join(each.type.choices) if isinstance(each.type, click.Choice) else ""
        kind = choices or each.type.name
        many = ", many" if each.multiple or each.nargs != 1 else ""
        must = ", required" if each.required else ""
        if isinstance(each, click.Option):
            names = " ".join(sorted((*each.opts, *each.secondary_opts), key=len, reverse=True))
            first, _, others = names.partition(" ")
            use = "flag" if each.is_flag else kind
            also = f", also {others}" if others else ""
            yield f"command {words} {first}", f"{use}{many}{must}{also}"
        else:
            yield f"command {words} {each.human_readable_name}", f"{kind}{many}{must}"


PARTS: Final[tuple[Callable[[], Lines], ...]] = (
    _names_of_python,
    _names_for_catalogs,
    _statements,
    _procedures,
    _functions,
    _metadata_tables,
    _columns_of_rows,
    _options,
    _table_properties,
    _catalog_properties,
    _session_settings,
    _environment_variables,
    _commands,
)


def main(words: list[str]) -> int:
    """Write the list, or compare with it; returns the exit code."""
    now = promises()
    if words == ["--check"]:
        found = differences(from_text(PROMISES.read_text()), now)
        print(*found, sep="\n")
        return 1 if found else 0
    PROMISES.write_text(as_text(now))
    print(f"{PROMISES.relative_to(ROOT)}: {len(now)} names")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
