"""Names and sizes of what is in `src/frazil`, as CONTRIBUTING.md and the architecture page say."""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "frazil"
MOST_LINES, MOST_MODULES = 800, 14


def test_no_public_class_name_is_used_twice():
    places = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
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
