"""Names that wait for their module are used as what stands for another thing can be."""

import ast
from pathlib import Path

SOURCES = sorted(Path("src/frazil").rglob("*.py"))


def test_names_that_wait_are_called_or_asked_for_attributes():
    used = [(path, tree, found) for path, tree in _trees() if (found := _waiting(tree))]
    assert len(used) > 10
    wrong = [
        f"{path}:{node.lineno} {node.id}"
        for path, tree, waiting in used
        for node in _uses_by_value(tree)
        if node.id in waiting
    ]
    assert wrong == []


def test_names_that_wait_are_those_that_type_checkers_see():
    for path, tree in _trees():
        checked = {
            (alias.asname or alias.name, _module_of(each, alias))
            for block in _blocks(tree)
            for each in block.body
            if isinstance(each, ast.Import | ast.ImportFrom)
            for alias in each.names
        }
        assert set(_waiting(tree).items()) <= checked, path


def _trees():
    return [(path, ast.parse(path.read_text())) for path in SOURCES]


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
