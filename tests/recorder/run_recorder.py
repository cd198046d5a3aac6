"""What the cases of a run really did: a line for each kind of call of each case.

It records where ``FRAZIL_CIRCLES`` names a folder, which the commands that run a whole circle do.
Each process appends to a file of its own there; so do programs that a test starts, until they are
killed; forks write to the file of the process that they come from. `run_seams` says what is
noted, and `scripts/cells.py` reads it.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

from run_seams import Facts, happening, seams

FOLDER: Final = "FRAZIL_CIRCLES"
CIRCLE: Final = "FRAZIL_CIRCLE"
DIMENSIONS: Final = (
    "kind",
    "name",
    "mode",
    "version",
    "face",
    "session",
    "store",
    "catalog",
    "types",
)
HERE: Final = Path(__file__).resolve().parent
PASSED: Final = ("frazil.spark.attached.hooks", "frazil.storage.on_driver")
"""Modules that stand before the one that a call comes in by."""
FACES: Final = (
    ("frazil.cli", "command line"),
    ("frazil.serve", "server"),
    ("frazil.cdc", "follower"),
    ("frazil.spark.attached.dataframes", "DataFrame"),
    ("frazil.spark.attached.catalog_methods", "spark.catalog"),
    ("frazil.spark.attached", "spark.sql"),
)


# -- from where a call came ------------------------------------------------------------------------


def face_of(frame: FrameType | None, *, of_calls: bool = True) -> str:
    """By what a user's call came in: the outermost module of ours.

    Args:
        of_calls: whether what a CALL does came in by it, however the CALL came.
    """
    outer, function, by_call = "", "", False
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("frazil.") and module not in PASSED:
            outer, function = module, frame.f_code.co_name
            by_call = by_call or module == "frazil.spark.procedures.call"
        frame = frame.f_back
    if by_call and of_calls:
        return "CALL"
    for begin, face in FACES:
        if outer == begin or outer.startswith(f"{begin}."):
            return face
    if function == "sql" and outer.startswith("frazil.spark.lake"):
        return "lake.sql"
    return "method"


# -- the record ------------------------------------------------------------------------------------


# Taken before any test counts or breaks the calls of a process.
_write = os.write


class Record:
    """The lines of this process, each once for a case; what is forked from it adds to its file."""

    def __init__(self) -> None:
        self._case = ""
        self._known: set[tuple[str, ...]] = set()
        self._file: int | None = None
        self._free_guard()
        os.register_at_fork(after_in_child=self._free_guard)

    def note(self, facts: Facts) -> None:
        """Add a line of the case that runs, unless there is one like it."""
        case = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        circle = os.environ.get(CIRCLE, "")
        if not case or not circle:
            return
        line = tuple(facts.get(each, "") for each in DIMENSIONS)
        with self._guard:
            if case != self._case:
                self._case, self._known = case, set()
            if line in self._known:
                return
            self._known.add(line)
            if self._file is None:
                self._file = self._opened()
            _write(self._file, (json.dumps([circle, case, *line]) + "\n").encode())

    def _opened(self) -> int:
        folder = Path(os.environ[FOLDER])
        folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0)
        return os.open(folder / f"{os.getpid()}.jsonl", flags, 0o644)

    def _free_guard(self) -> None:
        # A kill is noted, also one inside of a note; no thread of another process frees a lock.
        self._guard = threading.RLock()


RECORD: Final = Record()


def noted(call: Callable[..., Any], note: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does what a call does, and notes it when it has returned."""

    @functools.wraps(call)
    def watched(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        found = note(args, kwargs, result)
        for facts in found if isinstance(found, list) else [found] if found else []:
            if "face" not in facts:
                is_call = facts["kind"] == "procedure"
                facts["face"] = face_of(sys._getframe(1), of_calls=not is_call)
            RECORD.note(facts)
        return result

    return watched


# -- where it is put in ----------------------------------------------------------------------------


def watch(module: ModuleType, places: Sequence[tuple[str, Any]]) -> None:
    """Have the places of a module noted.

    Raises:
        AttributeError: the module has no such place: `run_seams` is to be mended.
    """
    for place, note in places:
        owner_name, _, name = place.rpartition(".")
        owner: Any = getattr(module, owner_name) if owner_name else module
        is_optional, name = name.endswith("?"), name.removesuffix("?")
        plain = vars(owner).get(name)
        if plain is None:
            if is_optional:
                continue
            plain = getattr(owner, name)
        if isinstance(plain, classmethod):
            setattr(owner, name, classmethod(noted(plain.__func__, note)))
        else:
            setattr(owner, name, noted(plain, note))


class Finder(importlib.abc.MetaPathFinder):
    """Watches the places of a module as soon as it is imported."""

    def __init__(self, places: dict[str, list[tuple[str, Any]]]) -> None:
        self._places = places

    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find it as Python would, and watch it."""
        if fullname not in self._places:
            return None
        others = (each for each in sys.meta_path if each is not self)
        found = (each.find_spec(fullname, path, target) for each in others)
        spec = next((each for each in found if each is not None), None)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            # One loader may be for all modules of an archive.
            if module.__name__ == fullname:
                watch(module, self._places[fullname])

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Record from now on, in this process.

    Raises:
        RuntimeError: a module whose functions are watched is imported already.
    """
    places = seams()
    for name, watched in places.items():
        if name not in sys.modules:
            continue
        if any("." not in place for place, _ in watched):
            raise RuntimeError(f"{name} is imported before the recorder: others have its functions")
        watch(sys.modules[name], watched)
    sys.meta_path.insert(0, Finder(places))
    os.kill = noting_kills(os.kill)


def noting_kills(kill: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Return `os.kill` that notes a process which ends at once, itself or another."""

    def noting(pid: int, number: int) -> None:
        if number == signal.SIGKILL:
            RECORD.note(happening("kill")((), {}, None))
        kill(pid, number)

    return noting


# Modules of tests that pytest loads next import what is watched.
if os.environ.get(FOLDER):
    os.environ[FOLDER] = os.path.abspath(os.environ[FOLDER])
    install()


# -- as a plugin of pytest -------------------------------------------------------------------------


def pytest_configure() -> None:
    """Have the programs that tests start record too, and note kills and faults."""
    if not os.environ.get(FOLDER):
        return
    import programs
    from faulty_io import FaultyIO

    # Programs are given this process's path.
    if str(HERE) not in sys.path:
        sys.path.append(str(HERE))
    _note_kills(programs.Program)
    _note_faults(FaultyIO)


def pytest_runtest_setup(item: Any) -> None:
    """Say which circle the case is of, and what is known of it before it runs."""
    if os.environ.get(FOLDER):
        from ci_share import circle_of

        os.environ[CIRCLE] = circle_of({mark.name for mark in item.iter_markers()})


def pytest_runtest_call(item: Any) -> None:
    """Note that a case runs; a skipped one does not."""
    if not os.environ.get(FOLDER):
        return
    folder = Path(str(item.path)).parent.name
    RECORD.note({"kind": "case", "name": folder})
    of_hypothesis = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    if of_hypothesis or "seed" in getattr(item, "fixturenames", ()):
        RECORD.note({"kind": "event", "name": "random model", "mode": plane_of(folder)})


def pytest_runtest_logreport(report: Any) -> None:
    """Note what is not on this machine, so that cases were skipped."""
    if os.environ.get(FOLDER) and report.skipped and isinstance(report.longrepr, tuple):
        place, _, reason = report.longrepr
        if Path(place).name == "absent.py":
            RECORD.note({"kind": "absent", "name": reason.removeprefix("Skipped: ")})


def plane_of(folder: str) -> str:
    """The plane that the cases of a folder are about."""
    if folder.startswith(("format", "views")):
        return "format"
    if folder in ("catalog", "planning", "rest", "storage", "table"):
        return "table"
    return "serve" if folder == "serve" else "spark"


def _note_kills(program: Any) -> None:
    kill = program.kill

    def noting(self: Any) -> None:
        if self.process.poll() is None:
            RECORD.note(happening("kill")((), {}, None))
        kill(self)

    program.kill = noting


def _note_faults(faulty: Any) -> None:
    run = faulty._run

    def noting(self: Any, *args: Any) -> Any:
        left = self.left
        try:
            return run(self, *args)
        except BaseException:
            if left is not None and left <= 1:
                RECORD.note(happening("fault")((), {}, None))
            raise

    faulty._run = noting
