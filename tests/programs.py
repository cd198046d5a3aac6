"""Programs that a test starts: each is a process of its own, which does not outlive its test.

A program finds the modules that the test finds. Where a test fails, its message has the last that
the program printed, and its errors.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import IO, Any, Self

SPARK = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
"""What a file of the tests that begins a session needs."""
_LAST = 20_000
"""So many characters of what a program said are shown."""


def free_port() -> int:
    """A port that nobody listens on, and that the system gives no other program by itself."""
    while True:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def forked(run: Callable[..., object], *arguments: Any) -> int:
    """The id of a copy of this process that runs a function; its code is 3 where that raises."""
    child = os.fork()
    if child == 0:
        status = 3
        try:
            run(*arguments)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def run_program(program: Path | str, *arguments: Any, **options: Any) -> str:
    """Run a program to its end, and return what it prints; arguments as of `Program`."""
    return ended_program(program, *arguments, **options).printed


def ended_program(
    program: Path | str,
    *arguments: Any,
    code: int | Collection[int] = 0,
    seconds: float = 500,
    **options: Any,
) -> Program:
    """Run a program to its end; arguments as of `Program` and of its `end`."""
    with Program(program, *arguments, **options) as running:
        running.end(code=code, seconds=seconds)
    return running


class Program:
    """A program of Python that runs; as a context manager it is killed after the block.

    Attributes:
        process: the process; it leads a group, in which its children are.
        lines: what it has printed so far.
        errors: the lines of its standard error so far.
    """

    def __init__(
        self,
        program: Path | str,
        *arguments: Any,
        cwd: Path | None = None,
        variables: Mapping[str, str | None] | None = None,
        python: Path | None = None,
    ) -> None:
        """Start it.

        Args:
            program: its file, the name of a module, or lines of code.
            arguments: texts, paths and numbers as they are; lists and dicts as JSON.
            cwd: its folder, unless it is the test's.
            variables: of its environment, beside those of the test; None leaves one out.
            python: runs it, and finds no module of the tests'; theirs unless given.
        """
        paths: dict[str, str | None] = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        if python is not None:
            paths = {"PYTHONPATH": None, "PYSPARK_PYTHON": None}
        # Modules and lines of code are run as a user has them run.
        settings = SPARK if isinstance(program, Path) and python is None else {}
        merged = {**os.environ, **paths, **settings, **(variables or {})}
        self.process = subprocess.Popen(
            [str(python or sys.executable), *_words(program), *map(_text, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=cwd,
            env={key: value for key, value in merged.items() if value is not None},
            start_new_session=True,
        )
        self.lines: list[str] = []
        self.errors: list[str] = []
        streams = ((self.process.stdout, self.lines), (self.process.stderr, self.errors))
        self._readers = [threading.Thread(target=_read, args=each, daemon=True) for each in streams]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def printed(self) -> str:
        """What it has printed so far."""
        return "".join(self.lines)

    @property
    def said(self) -> str:
        """The last of what it has printed and of its errors, for a message."""
        return f"{self.printed[-_LAST:]}\n{''.join(self.errors)[-_LAST:]}"

    def has_printed(self, count: int) -> bool:
        """Whether it has printed so many lines."""
        return len(self.lines) >= count

    def tell(self, text: str) -> None:
        """Write to its input."""
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def wait_until(self, is_so: Callable[[], object], *, seconds: float = 300) -> None:
        """Wait until something is so, while it runs.

        Raises:
            AssertionError: it has ended before, or is not so far in that time.
        """
        deadline = time.monotonic() + seconds
        while not is_so():
            if self.process.poll() is not None:
                self._read_all()
                assert is_so(), f"it has ended: {self.said}"
            assert time.monotonic() < deadline, f"it is not so far after {seconds} s: {self.said}"
            time.sleep(0.01)

    def end(self, *, code: int | Collection[int] = 0, seconds: float = 500) -> str:
        """Close its input, wait for its end, and return what it has printed.

        Raises:
            AssertionError: it ends with another code, or not in that time.
        """
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            found = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"it has not ended after {seconds} s: {self.said}") from None
        self._read_all()
        assert found in ([code] if isinstance(code, int) else code), f"{found}: {self.said}"
        return self.printed

    def kill(self) -> None:
        """Kill it and its children at once, wherever each is."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._read_all()

    def _read_all(self) -> None:
        """Read what is left; children that live on may hold the streams for a while."""
        for reader in self._readers:
            reader.join(60)


def _words(program: Path | str) -> list[str]:
    """What Python is given to run it."""
    if isinstance(program, Path):
        return [str(program)]
    return ["-m", program] if program.replace(".", "").isidentifier() else ["-c", program]


def _text(argument: Any) -> str:
    return json.dumps(argument) if isinstance(argument, dict | list) else str(argument)


def _read(stream: IO[str], lines: list[str]) -> None:
    lines.extend(iter(stream.readline, ""))
