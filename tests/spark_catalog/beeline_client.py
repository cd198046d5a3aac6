"""Beeline, whose classes are among PySpark's own, as a program that knows nothing of Frazil."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pyspark

JARS = Path(pyspark.__file__).parent / "jars"
OF_OTHERS = ("SPARK_", "PYSPARK_", "PYTHON", "FRAZIL")


class Beeline:
    """A beeline that runs the statements of a file, and prints their rows with commas between.

    It goes on after an error. A statement ends with a line, since beeline cuts at semicolons.
    """

    def __init__(self, port: int, file: Path, *lines: str, path: str = "") -> None:
        java = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin") or "java"
        file.write_text("".join(f"{each if each[0] == '!' else each + ';'}\n" for each in lines))
        words = [
            *(java, "-cp", f"{JARS}/*", "org.apache.hive.beeline.BeeLine"),
            *("-u", f"jdbc:hive2://127.0.0.1:{port}/{path}", "-f", str(file)),
            *("--outputformat=csv2", "--showHeader=false", "--silent=true", "--force=true"),
        ]
        known = {key: value for key, value in os.environ.items() if not key.startswith(OF_OTHERS)}
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=file.parent,
            env=known,
        )

    def end(self) -> tuple[list[str], str]:
        """The lines that it has printed, and its errors."""
        try:
            printed, errors = self.process.communicate(timeout=300)
        finally:
            self.process.kill()
        return [line for line in printed.splitlines() if line.strip()], errors
