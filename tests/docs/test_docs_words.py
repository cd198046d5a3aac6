"""Plain words: pages and the docstrings of public names have none that a reader stumbles over."""

import ast
import importlib
import inspect
import re
from pathlib import Path

from trees import trees_of

import frazil

ROOT = Path(__file__).resolve().parents[2]
# The others are for those who work on Frazil.
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if path.name not in ("specification.md", "architecture.md", "benchmarks.md")
]
STUMBLES = re.compile(
    r"(?<!there )\bis none\b|\bthat is nowhere\b|\bso many\b|\bwhat is left of it\b"
    r"|\bin the words of\b|\bthe house\b|\bwithout more ado\b|\ba (row|task|line|file) a \w"
)
# Whose inside is in plain words, too.
ROOMS = ("format", "storage", "catalog", "table")
NOT_VERBS = {"The", "A", "An", "Whether", "What", "Which", "Where", "How", "All", "It", "This"}


def public_objects():
    """Every name of the package and of the reference pages, by the dotted path it is known by."""
    for name in frazil.__all__:
        yield f"frazil.{name}", getattr(frazil, name)
    for path in re.findall(r"^::: ([\w.]+)$", (ROOT / "docs/reference/api.md").read_text(), re.M):
        module, _, name = path.rpartition(".")
        yield path, getattr(importlib.import_module(module), name)


def public_functions():
    for path, found in public_objects():
        if inspect.isclass(found):
            for name, member in inspect.getmembers(found):
                if name.startswith("_") or not inspect.isroutine(member):
                    continue
                if (getattr(member, "__module__", "") or "").startswith("frazil."):
                    yield f"{path}.{name}", member
        elif inspect.isroutine(found):
            yield path, found


def test_pages_are_in_plain_words():
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in PAGES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if STUMBLES.search(line)
    ]
    assert found == []


def test_docstrings_of_public_names_are_in_plain_words():
    documented = {path: inspect.getdoc(each) or "" for path, each in public_objects()}
    documented |= {path: inspect.getdoc(each) or "" for path, each in public_functions()}
    assert [path for path, text in documented.items() if not text] == []
    assert [path for path, text in documented.items() if STUMBLES.search(text)] == []


def test_docstrings_of_the_inside_are_in_plain_words():
    found = []
    for room in ROOMS:
        for path, tree in trees_of(ROOT / "src/frazil" / room):
            for node in ast.walk(tree):
                has_docstring = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
                if has_docstring and STUMBLES.search(ast.get_docstring(node) or ""):
                    found.append(f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'the module')}")
    assert found == []


def test_the_docstring_of_a_public_function_starts_with_a_verb():
    found = []
    for path, function in public_functions():
        first = (inspect.getdoc(function) or "").split(maxsplit=1)
        if not first or first[0].rstrip(":,;.") in NOT_VERBS or not first[0][0].isalpha():
            found.append(f"{path}: {' '.join(first)[:60]}")
    assert found == []
