"""Commands in this process, and what the tests of adoption and of the user's file share."""

import json
from pathlib import Path

import yaml
from click.testing import CliRunner

from frazil.cli import main


def frazil(*words, code=0, typed=None):
    """What a command prints, after checking its exit code; JSON alone where it was asked for."""
    result = CliRunner().invoke(main, [*map(str, words)], input=typed)
    assert result.exit_code == code, (result.output, result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.stdout if "--json" in words else result.output


def adopt(*words, code=0, into=("--warehouse", "new")):
    """What `frazil adopt` prints."""
    return frazil(*into, "adopt", *words, code=code)


def rows(*words, code=0, key="table", **more):
    """The rows of `frazil adopt` by one of their values."""
    document = json.loads(adopt(*words, "--json", code=code, **more))
    return {row[key]: row for row in document["tables"]}


def actions(*words, code=0, **more):
    """What becomes of each table."""
    return {name: row["action"] for name, row in rows(*words, code=code, **more).items()}


def everything_below(folder):
    """Files with their content, and folders."""
    return {path: path.is_dir() or path.read_bytes() for path in Path(folder).rglob("*")}


def catalogs_of(path):
    """The catalogs of a user's file."""
    return yaml.safe_load(path.read_text())["catalog"]
