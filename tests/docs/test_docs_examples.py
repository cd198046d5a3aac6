"""The documents say what the code does: names are the newest, properties are all listed."""

import ast
import inspect
import re
import typing

from pages import DOCUMENTS, ROOT, blocks_of
from trees import tree_of

import frazil
from frazil.format.predicates.columns import Column
from frazil.format.properties.table import COLUMN_PROPERTIES, PROPERTIES
from frazil.spark.transaction.table import TableTransaction
from frazil.spark.write.options import _OPTIONS, _OTHER_OPTIONS
from frazil.table.updates.schema import UpdateSchema
from frazil.table.updates.spec import UpdateSpec

BLOCKS = {
    f"{path.relative_to(ROOT)}:{block.line}": block.text
    for path in DOCUMENTS
    for block in blocks_of(path)
    if block.language == "python"
}
KNOWN = {
    "frazil": (frazil,),
    "lake": (frazil.Lake,),
    "trips": (frazil.Table,),
    "table": (frazil.Table,),
    "scan": (frazil.Scan,),
    "tx": (TableTransaction, frazil.LakeTransaction),
    "change": (UpdateSchema, UpdateSpec),
    "col": (Column,),
}
"""What the names in the examples are."""


def names_used(tree):
    """(known name, what follows it by dots, call or None), of `trips.files()` and the like."""
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        path, value = [node.attr], node.value
        while isinstance(value, ast.Attribute):
            path.insert(0, value.attr)
            value = value.value
        if isinstance(value, ast.Name) and value.id in KNOWN:
            yield value.id, path, calls.get(id(node))
        elif (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr == "scan"
        ):
            yield "scan", path, calls.get(id(node))


def class_of(owner, attribute):
    """The class that a property of one of Frazil's classes gives; None for anything else."""
    found = getattr(owner, attribute, None)
    if not isinstance(found, property):
        return None
    given = typing.get_type_hints(found.fget)["return"]
    return given if getattr(given, "__module__", "").startswith("frazil.") else None


def test_python_blocks_compile_and_name_what_there_is():
    assert [fault for where, text in BLOCKS.items() for fault in faults_of(text, where)] == []


def faults_of(text, where):
    """What a block of a page names that is not there."""
    for name, path, call in names_used(tree_of(text, where)):
        owners = KNOWN[name]
        for step in path[:-1]:
            owners = [inner for owner in owners if (inner := class_of(owner, step))]
        if not owners:
            continue
        shown = f"{where}: {name}.{'.'.join(path)}"
        owners = [owner for owner in owners if hasattr(owner, path[-1])]
        if not owners:
            yield f"{shown} does not exist"
        if call is None or not owners:
            continue
        namespace = class_of(owners[0], path[-1])
        called = namespace.__call__ if namespace else getattr(owners[0], path[-1])
        parameters = inspect.signature(called).parameters.values()
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            continue
        given = {keyword.arg for keyword in call.keywords if keyword.arg}
        if unknown := given - {parameter.name for parameter in parameters}:
            yield f"{shown} has no {', '.join(sorted(unknown))}"


PROPERTY = re.compile(
    r'"((?:write|commit|history|gc|schema)\.[a-z0-9.\-]*[a-z0-9])\.?"(?!\s*\+)', re.IGNORECASE
)


def test_every_table_property_is_documented():
    documented = (ROOT / "docs/reference/properties.md").read_text()
    names = [*PROPERTIES, *(f"{each.prefix}<name>" for each in COLUMN_PROPERTIES)]
    assert len(names) > 50
    assert [name for name in names if f"`{name}`" not in documented] == []


def test_table_properties_are_named_in_one_module():
    found = {
        (str(path.relative_to(ROOT / "src/frazil")), name)
        for path in (ROOT / "src/frazil").rglob("*.py")
        for name in PROPERTY.findall(path.read_text())
    }
    home = "format/properties/table.py"
    named = {name for file, name in found if file == home}
    assert len(named) > 50
    # The name mapping names itself in the errors of its JSON.
    assert {each for each in found if each[0] != home} == {
        ("format/schema/name_mapping.py", "schema.name-mapping.default")
    }


def test_every_write_option_is_documented():
    documented = (ROOT / "docs/reference/properties.md").read_text()
    options = [*_OPTIONS, *_OTHER_OPTIONS]
    assert [name for name in options if f"`{name}`" not in documented] == []


def test_links_between_documents():
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+\.md)", path.read_text()):
            assert (path.parent / target).is_file(), f"{path.name} links to {target}"
