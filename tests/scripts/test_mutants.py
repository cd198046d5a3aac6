"""`make mutants`: where a module is broken, in which order, and what its cases then say."""

from __future__ import annotations

import subprocess
from itertools import islice
from threading import Event

import pytest
from mutants import run as running
from mutants.cases import ROOT
from mutants.equivalents import key_of, reasons
from mutants.record import Record, make_record
from mutants.run import Run, faults, report, summary
from mutants.sequence import PLANES, room, sequence
from mutants.sites import KINDS, sites_of

MODULE = "src/frazil/format/ages.py"
SOURCE = '''"""Ages."""

ADULT = 18


def is_adult(age):
    """Whether somebody of an age of 18 is adult."""
    if age < 0:
        raise ValueError(f"{age} is below {0}")
    return age >= ADULT


def birthdays(age):
    years = []
    while True:
        if len(years) == age:
            return years
        years.append(len(years) + 1)


def unused(age):
    return age or 7
'''
TESTS = """
import pytest
from frazil.format.ages import birthdays, is_adult

def test_of_18():
    assert is_adult(18) and not is_adult(17)

@pytest.mark.check
def test_birthdays():
    assert birthdays(2) == [1, 2]

@pytest.mark.soak
def test_below():
    with pytest.raises(ValueError):
        is_adult(-1)
"""


def broken(source: str) -> list[tuple[str, str]]:
    """The kind and the broken line of each fault."""
    before = source.splitlines()
    return [
        (site.kind, next(b for a, b in zip(before, after, strict=False) if a != b).strip())
        for site in sites_of(MODULE, source.encode())
        for after in [site.broken(source.encode()).decode().splitlines()]
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = b < c", [("comparison", "a = b >= c")]),
        ("a = b is  not c", [("comparison", "a = b is c")]),
        ("a = é not in (c)", [("comparison", "a = é in (c)")]),
        ("a = b and c or d", [("and/or", "a = b or c or d"), ("and/or", "a = b and c and d")]),
        ("a = b[0]", [("constant", "a = b[1]")]),
        ("a = f(b, c=d, e=g)", [("argument", "a = f(b, e=g)"), ("argument", "a = f(b, c=d)")]),
        ("if a:\n    raise B", [("guard", "pass")]),
        ("for a in b:\n    if a:\n        continue", [("guard", "pass")]),
        ("if a:\n    b()\n", []),
        ("if a:\n    return b\nelse:\n    c()", []),
    ],
)
def test_what_is_broken(source, expected):
    assert sorted(broken(source)) == sorted(expected)


@pytest.mark.parametrize(
    "source",
    [
        '"""7 < 8"""',
        "a: Literal[7]",
        "if TYPE_CHECKING:\n    a = b < c",
        "def __repr__(self):\n    return 7",
        "@overload\ndef f(a): return 7",
        "class A(Protocol[T]):\n    def f(self, a=7): ...",
        "raise ValueError(7, a=b)",
        "a = SchemaError(b < c)",
        "_log.debug('%s', 7)",
        "assert a < 7",
        "a = f'{b < 7}'",
        "@dataclass(frozen=True)\nclass A: ...",
        "if a:\n    raise AssertionError(b)",
        "a = zip(b, c, strict=True)",
    ],
)
def test_what_no_case_can_tell_stays(source):
    assert broken(source) == []


@pytest.fixture(scope="module")
def all_sites():
    return running.all_sites(ROOT)


def test_a_seed_chooses_the_same_faults_again(all_sites):
    first, again, other = (
        list(islice(sequence(sites, seed), 60))
        for sites, seed in [(all_sites, 7), (reversed(all_sites), 7), (all_sites, 8)]
    )
    assert first == again != other


def test_planes_and_rooms_take_turns(all_sites):
    taken = list(islice(sequence(all_sites, 7), 60))
    planes = [room(site).split("/")[0] for site in taken]
    assert set(planes[:16]) == set(PLANES)
    assert planes[::2] == ["spark"] * 30
    assert {site.kind for site in taken} == set(KINDS)
    rooms = [room(site) for site in taken if site.path.startswith("src/frazil/spark/")]
    assert len(set(rooms)) == len(rooms)


def test_faults_that_are_none_are_in_the_source():
    for key, why in reasons().items():
        source = (ROOT / key[0]).read_bytes()
        assert key in {key_of(site, source) for site in sites_of(key[0], source)}
        assert why
        assert "\n" not in why


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A project of one module with its tests, and what these ran."""
    root = tmp_path_factory.mktemp("project") / "checkout"
    files = {
        MODULE: SOURCE,
        "src/frazil/__init__.py": "",
        "src/frazil/format/__init__.py": "",
        "tests/format/test_ages.py": TESTS,
        "conftest.py": "import sys\nsys.path.insert(0, 'src')\n",
        "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['check', 'soak']\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "."], [*settings, "commit", "-qm", "All"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    make_record(root / "record", root=root, commit="HEAD", jobs=1)
    return root


@pytest.fixture
def record(checkout):
    return Record(checkout / "record", root=checkout, now="HEAD")


def the_sites(*words: str):
    """The faults whose line has a word and that are of a kind."""
    wanted = {tuple(word.split(": ")) for word in words}
    return [
        site
        for site in sites_of(MODULE, SOURCE.encode())
        if any(site.kind == kind and text in site.text for kind, text in wanted)
    ]


@pytest.mark.soak
def test_each_fault_is_found_by_a_case_that_came_by_or_lives(checkout, record):
    sites = the_sites(
        "comparison: age >= ADULT",
        "constant: years) + 1",
        "guard: raise",
        "guard: return years",
    )
    run = Run(checkout, "HEAD", record, jobs=2, patience=3.0, stop=Event())
    outcomes = {outcome.site.text: outcome for outcome in run.outcomes(sites)}
    told = {text: (one.by, one.circle, one.how) for text, one in outcomes.items()}
    assert told == {
        "return age >= ADULT": ("tests/format/test_ages.py::test_of_18", "test", "failed"),
        "years.append(len(years) + 1)": (
            "tests/format/test_ages.py::test_birthdays",
            "check",
            "failed",
        ),
        "if len(years) == age: return years": (
            "tests/format/test_ages.py::test_birthdays",
            "check",
            "hung",
        ),
        'if age < 0: raise ValueError(f"{age} is below {0}")': (None, "", ""),
    }
    assert summary(outcomes.values()) == (
        "3 of 4 faults in 1 rooms found: 1 by `make test`, 2 by `make check`; 1 live",
        False,
    )
    [living] = [report(one, root=checkout) for one in outcomes.values() if one.by is None]
    assert living.splitlines()[-1].strip() == "+        pass"
    assert (checkout / MODULE).read_text() == SOURCE
    assert not list((checkout / ".mutants" / "trees").iterdir())


def test_lines_that_each_circle_ran(record):
    lines = SOURCE.splitlines()
    ran = {
        circles: {lines[line - 1].strip() for line in record.lines_run(MODULE, circles)}
        for circles in [("test",), ("test", "check")]
    }
    assert "return age >= ADULT" in ran["test",]
    assert "return years" not in ran["test",]
    assert "return years" in ran["test", "check"]
    assert "return age or 7" not in ran["test", "check"]
    assert "ADULT = 18" in ran["test",]


def test_lines_are_found_where_they_moved(checkout, record, tmp_path):
    before = record.lines_run(MODULE, ("test",))
    (checkout / MODULE).write_text("# One more line.\n" + SOURCE)
    tree = subprocess.run(["git", "stash", "create"], cwd=checkout, capture_output=True, check=True)
    (checkout / MODULE).write_text(SOURCE)
    moved = Record(checkout / "record", root=checkout, now=tree.stdout.decode().strip())
    assert moved.lines_run(MODULE, ("test",)) == {line + 1 for line in before}


def test_a_fault_that_is_none_is_shown_and_the_next_one_comes(checkout, capsys):
    sites = the_sites("guard: raise", "comparison: age >= ADULT")
    line = "return age >= ADULT"
    listed = {(MODULE, line, "comparison", "return age < ADULT"): "nobody asks"}
    assert list(faults(sites, root=checkout, listed=listed)) == the_sites("guard: raise")
    assert capsys.readouterr().out == f"same   {MODULE}:10 comparison: nobody asks\n"
