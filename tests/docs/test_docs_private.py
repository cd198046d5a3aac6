"""A private name of ours is used inside its own class only."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src"
OF_ITSELF = ("self", "cls", "type(self)")
# Names of other libraries, which have no public way.
OF_OTHERS = {"_strip_protocol", "_jvm", "_jdf", "_jsc", "_jsq", "_jsparkSession", "_jc",
             "_sparkSession", "_plan", "_alias", "_jreader", "_jwrite",
             "_expr", "_unparsed_identifier", "_gateway", "_1", "_2",
             "_render_traceback_", "_NAMES_TO_VALUES", "_VALUES_TO_NAMES"}  # fmt: skip


def used_elsewhere(node: ast.AST, classes: Sequence[ast.ClassDef] = ()) -> Iterator[ast.Attribute]:
    """Private attributes of objects that are of no class around the place of use."""
    for child in ast.iter_child_nodes(node):
        around = (*classes, child) if isinstance(child, ast.ClassDef) else classes
        if isinstance(child, ast.Attribute) and is_private(child.attr):
            own = {name for each in around for name in names_of(each)}
            if child.attr not in own and ast.unparse(child.value) not in OF_ITSELF:
                yield child
        yield from used_elsewhere(child, around)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def names_of(owner: ast.ClassDef) -> Iterator[str]:
    for node in ast.walk(owner):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def test_private_names_are_used_inside_their_own_class():
    found = [
        f"{path.relative_to(SOURCES)}:{each.lineno}: {ast.unparse(each)}"
        for path in sorted(SOURCES.rglob("*.py"))
        for each in used_elsewhere(ast.parse(path.read_text()))
        if each.attr not in OF_OTHERS
    ]
    assert found == []


def test_a_use_elsewhere_is_found():
    tree = ast.parse("class A:\n def f(self, o):\n  return self._x + o._x + o._y")
    assert [each.attr for each in used_elsewhere(tree)] == ["_y"]
