"""The recipe for conda and the container file: they say of Frazil what it is."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from frazil.cli import main
from frazil.installed_spark import OLDEST_SPARK, PYSPARK
from frazil.version import FRAZIL_VERSION

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RECIPE = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
CONTAINERS = (ROOT / "containers" / "Dockerfile").read_text()


def needs(lines: list[str]) -> set[tuple[str, str]]:
    """Names and versions."""
    found = [Requirement(line) for line in lines]
    return {(each.name, str(each.specifier)) for each in found}


def test_the_recipe_needs_what_the_package_needs() -> None:
    run, constraints = RECIPE["requirements"]["run"][1:], RECIPE["requirements"]["run_constraints"]
    assert needs(run) == needs(PROJECT["dependencies"])
    assert needs(constraints) == needs([PYSPARK])
    assert RECIPE["context"]["version"] == FRAZIL_VERSION
    assert f">={RECIPE['context']['python_min']}" == PROJECT["requires-python"]
    [program] = RECIPE["build"]["python"]["entry_points"]
    assert dict([program.split(" = ")]) == PROJECT["scripts"]


def test_one_pyspark_is_meant_wherever_one_is_named() -> None:
    local = needs([each for each in PROJECT["optional-dependencies"]["local"] if "[" not in each])
    assert local == needs([PYSPARK])
    oldest = ".".join(map(str, OLDEST_SPARK))
    assert [e.version for e in Requirement(PYSPARK).specifier if e.operator == ">="] == [oldest]
    assert "pyspark" not in dict(needs(PROJECT["dependencies"]))


def test_images_install_from_registries_alone() -> None:
    assert not re.search(r"\b(curl|wget|git|ADD|https?:)\b", CONTAINERS)
    installed = re.findall(r"\b(apt-get|pip|python3 -m venv)\b", CONTAINERS)
    assert set(installed) == {"apt-get", "pip", "python3 -m venv"}
    named = re.findall(r"whl\)\[([\w,]+)\]", CONTAINERS)
    extras = PROJECT["optional-dependencies"]
    assert {each for names in named for each in names.split(",")} <= set(extras)


@pytest.mark.parametrize("line", re.findall(r"^CMD (.*)$", CONTAINERS, re.MULTILINE))
def test_what_an_image_runs_is_a_command(line: str) -> None:
    name, *words = json.loads(line)
    command = main.get_command(None, name)
    options = {each for parameter in command.params for each in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options
