"""Servers of other clouds' protocols, started where their programs are installed."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from frazil.errors import AlreadyExistsError
from frazil.storage.files import FileIO

STARTING_SECONDS = 30


def program(variable: str, name: str, advice: str) -> str:
    """The emulator's program; the test is skipped where it is not installed."""
    found = shutil.which(os.environ.get(variable, name))
    if found is None:
        pytest.skip(f"there is no {name}: {advice}, or name the program in {variable}")
    return found


@contextlib.contextmanager
def running(command: list[str], port: int) -> Iterator[None]:
    """The server while it runs, from the first line after which it answers."""
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    killer = threading.Timer(STARTING_SECONDS, server.kill)
    killer.start()
    try:
        said = server.stdout
        assert said is not None
        if not any(_answers(port) for _ in said):
            pytest.fail(f"{command[0]} did not start")
        killer.cancel()
        # A full pipe would stop the server.
        threading.Thread(target=said.read, daemon=True).start()
        yield
    finally:
        killer.cancel()
        server.terminate()
        server.wait()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def winners(properties: dict[str, str], path: str, creators: int, size: int) -> list[int]:
    """Which of several creators of one path succeed; each writes its number ``size`` times."""
    won: list[int] = []
    gate = threading.Barrier(creators)

    def creator(number: int) -> None:
        own = FileIO(properties)
        own.exists(path)
        gate.wait()
        with contextlib.suppress(AlreadyExistsError):
            own.create(path, bytes([number]) * size)
            won.append(number)

    with ThreadPoolExecutor(creators) as pool:
        list(pool.map(creator, range(creators)))
    return won


def in_a_forked_child(call: Callable[[], object]) -> object:
    """What a call returns in a forked child, as text; the child has 20 seconds."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = repr(call())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    killer = threading.Timer(20, os.kill, (child, 9))
    killer.start()
    with open(reader, encoding="utf-8") as answers:
        answer = answers.read()
    killer.cancel()
    os.waitpid(child, 0)
    return answer
