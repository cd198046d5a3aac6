"""Names, sizes and imports of what is in `src/frazil`, as CONTRIBUTING and architecture say."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Set
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
from trees import trees_of

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "frazil"
MOST_LINES, MOST_MODULES = 800, 14


def test_no_public_class_name_is_used_twice():
    places = defaultdict(list)
    for path, tree in trees_of(SOURCES):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCES)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_modules_and_folders_stay_small():
    modules = [path for path in SOURCES.rglob("*.py") if path.name != "__init__.py"]
    lines = {path: path.read_text().count("\n") for path in modules}
    folders = Counter(path.parent for path in modules)
    assert len(modules) > 100
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}
    assert {path: count for path, count in folders.items() if count > MOST_MODULES} == {}


def test_each_plane_and_each_room_is_on_the_architecture_page():
    planes, rooms = (ROOT / "docs" / "architecture.md").read_text().split("## Floors\n", 1)
    rooms = rooms.split("\n## ", 1)[0]
    for path in SOURCES.iterdir():
        if (path / "__init__.py").exists():
            assert re.search(rf"`(?:frazil\.)?{path.name}`", planes), path.name
            assert re.search(rf"^\| .*`{path.name}[`/]", rooms, re.M), path.name


def test_no_modules_import_each_other_in_a_circle():
    """Not even for their types."""
    graph = grimp.build_graph("frazil", exclude_type_checking_imports=False, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 400
    # Raises CycleError, which names the modules.
    TopologicalSorter(imports).prepare()


# -- a private name of ours is used inside its own class only --------------------------------------

OF_ITSELF = ("self", "cls", "type(self)")
# Names of other libraries, which have no public way.
OF_OTHERS = {"_strip_protocol", "_jvm", "_jdf", "_jsc", "_jsq", "_jsparkSession", "_jc",
             "_sparkSession", "_plan", "_alias", "_jreader", "_jwrite",
             "_expr", "_unparsed_identifier", "_gateway", "_1", "_2",
             "_render_traceback_", "_NAMES_TO_VALUES", "_VALUES_TO_NAMES"}  # fmt: skip


def used_elsewhere(node: ast.AST, own: Set[str] = frozenset()) -> Iterator[ast.Attribute]:
    """Private attributes of objects that are of no class around the place of use.

    Args:
        own: the names of the classes around the node.
    """
    for child in ast.iter_child_nodes(node):
        inside = {*own, *names_of(child)} if isinstance(child, ast.ClassDef) else own
        is_other = isinstance(child, ast.Attribute) and child.attr not in own
        if is_other and is_private(child.attr) and ast.unparse(child.value) not in OF_ITSELF:
            yield child
        yield from used_elsewhere(child, inside)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def names_of(owner: ast.ClassDef) -> Iterator[str]:
    for node in ast.walk(owner):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and is_named_self(node.value):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def is_named_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def test_private_names_are_used_inside_their_own_class():
    found = [
        f"{path.relative_to(SOURCES.parent)}:{each.lineno}: {ast.unparse(each)}"
        for path, tree in trees_of(SOURCES.parent)
        for each in used_elsewhere(tree)
        if each.attr not in OF_OTHERS
    ]
    assert found == []


def test_a_use_elsewhere_is_found():
    tree = ast.parse("class A:\n def f(self, o):\n  return self._x + o._x + o._y")
    assert [each.attr for each in used_elsewhere(tree)] == ["_y"]


# -- names that wait for their module are used as what stands for another thing can be -------------


def test_names_that_wait_are_called_or_asked_for_attributes():
    used = [(path, tree, found) for path, tree in trees_of(SOURCES) if (found := _waiting(tree))]
    assert len(used) > 10
    wrong = [
        f"{path}:{node.lineno} {node.id}"
        for path, tree, waiting in used
        for node in _uses_by_value(tree)
        if node.id in waiting
    ]
    assert wrong == []


def test_names_that_wait_are_those_that_type_checkers_see():
    for path, tree in trees_of(SOURCES):
        checked = {
            (alias.asname or alias.name, _module_of(each, alias))
            for block in _blocks(tree)
            for each in block.body
            if isinstance(each, ast.Import | ast.ImportFrom)
            for alias in each.names
        }
        assert set(_waiting(tree).items()) <= checked, path


def _blocks(tree):
    return [each for each in tree.body if isinstance(each, ast.If) and each.orelse]


def _waiting(tree):
    """Names of `later`, and what each stands for."""
    found = {}
    for block in _blocks(tree):
        for each in block.orelse:
            if "later" not in ast.unparse(each.value):
                continue
            module, *names = (argument.value for argument in each.value.args)
            target = each.targets[0]
            bound = target.elts if isinstance(target, ast.Tuple) else [target]
            named = [f"{module}.{name}" for name in names] or [module]
            found |= {name.id: full for name, full in zip(bound, named, strict=True)}
    return found


def _module_of(statement, alias):
    return alias.name if isinstance(statement, ast.Import) else f"{statement.module}.{alias.name}"


def _uses_by_value(node):
    """Names that are read other than to be called, asked, or compared with a class of a value."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.arg() | ast.ImportFrom() | ast.Import():
            return
        case ast.AnnAssign(target=target, value=value):
            parts = [target, value]
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[first, second]):
            given = second.elts if isinstance(second, ast.Tuple) else [second]
            parts = [first, *(each for each in given if not isinstance(each, ast.Name))]
        case ast.Call(func=ast.Name(), args=arguments, keywords=keywords):
            parts = [*arguments, *keywords]
        case ast.Attribute(value=ast.Name() as asked, attr=name):
            # Names of the language are those of what stands for the other.
            if name.startswith("__"):
                yield asked
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            parts = [*node.decorator_list, node.args, *node.body]
        case ast.Name(ctx=ast.Load()):
            yield node
            return
        case _:
            parts = list(ast.iter_child_nodes(node))
    for part in parts:
        if part is not None:
            yield from _uses_by_value(part)
