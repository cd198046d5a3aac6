"""Spark with nearly all its jars as one, for tests: one_jar.py FOLDER

A JVM looks for a class that is nowhere, as the generated code's compiler and Py4J often do, in
each of Spark's 280 jars, which small queries feel. FOLDER becomes a SPARK_HOME.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pyspark

# Clusters and a metastore that no test starts.
LEFT_OUT = (
    "datanucleus-", "derby", "hive-", "kubernetes-", "spark-hive", "spark-kubernetes", "spark-yarn",
    "vertx-", "volcano-",
)  # fmt: skip
# Each has a list of its own plugins, in a form of its own under one name.
KEPT = ("log4j-",)
SERVICES = "META-INF/services/"
MANIFEST = "Manifest-Version: 1.0\nMulti-Release: true\n\n"


def make_home(folder: Path, spark: Path) -> None:
    """Make a folder like Spark's own but for its jars."""
    (folder / "jars").mkdir(parents=True, exist_ok=True)
    jars = sorted(each for each in (spark / "jars").glob("*.jar") if not is_left_out(each))
    kept = [each for each in jars if each.name.startswith(KEPT)]
    for entry in spark.iterdir():
        if entry.name != "jars":
            link(folder / entry.name, entry)
    for jar in kept:
        link(folder / "jars" / jar.name, jar)
    partial = folder / "spark.jar.partial"
    merge([each for each in jars if each not in kept], partial)
    partial.rename(folder / "jars" / "spark.jar")


def link(name: Path, target: Path) -> None:
    name.unlink(missing_ok=True)
    name.symlink_to(target.resolve())


def is_left_out(jar: Path) -> bool:
    return jar.name.startswith(LEFT_OUT)


def merge(jars: list[Path], target: Path) -> None:
    """Write one jar: of files of one name the first, of lists of services all lines."""
    services: dict[str, list[bytes]] = {}
    seen = {"META-INF/MANIFEST.MF"}
    # Not compressed: loading a class is then a read.
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as merged:
        merged.writestr("META-INF/MANIFEST.MF", MANIFEST)
        for jar in jars:
            with zipfile.ZipFile(jar) as source:
                for entry in source.infolist():
                    name = entry.filename
                    if name.startswith(SERVICES) and not entry.is_dir():
                        services.setdefault(name, []).append(source.read(entry))
                    # Folders too: Spark asks for that of its user interface's files.
                    elif not (name in seen or is_signature(name)):
                        seen.add(name)
                        merged.writestr(name, source.read(entry))
        for name, lists in services.items():
            merged.writestr(name, b"\n".join(lists))


def is_signature(name: str) -> bool:
    """Signatures are of a whole jar, and a JVM refuses classes under one that does not fit."""
    return name.startswith("META-INF/") and name.endswith((".SF", ".RSA", ".DSA", ".EC"))


make_home(Path(sys.argv[1]), Path(pyspark.__file__).parent)
