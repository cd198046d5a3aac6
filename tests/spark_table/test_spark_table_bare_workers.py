"""Executors whose Python lacks Frazil: commands work without it, or say what is lacking."""

import venv
from pathlib import Path

import pytest

from ci_share import only_in_soak
from connect_server import connect_server
from programs import run_program

pytestmark = pytest.mark.check

PROGRAM = Path(__file__).with_name("bare_workers.py")


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """A Python of this version without any package."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


@pytest.mark.parametrize(
    ("session", "parts"),
    [("local", "some"), only_in_soak("local", "all"), only_in_soak("connect", "all")],
)
def test_every_command_works_or_says_what_executors_lack(tmp_path, bare_python, session, parts):
    if session == "local":
        told = run_program(PROGRAM, tmp_path, bare_python, session, parts)
    else:
        pytest.importorskip("grpc", reason="the extra `connect` is not installed")
        with connect_server(tmp_path, python=str(bare_python)) as address:
            told = run_program(PROGRAM, tmp_path, bare_python, address, parts)
    assert told.strip().splitlines() == ["right"], told
