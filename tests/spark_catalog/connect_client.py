"""A client of Spark Connect that knows nothing of Frazil: runs steps of a file, prints answers.

A step is a statement, or an expression of Python that begins with ``py:`` and sees the session as
`s`; one that begins with ``2:`` is of another session. With a folder the program has Frazil, and
attaches a lake there as `lake`: the server has none.
"""

import json
import sys
import traceback
from os import getcwd  # noqa: F401 Steps name it.

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, concat, lit  # noqa: F401 Steps name them.


def answer(s: object, step: str) -> object:
    """The rows of a statement, the value of an expression, or the class and text of an error."""
    try:
        if step.startswith("py:"):
            return eval(step[3:], {**globals(), "s": s})
        return [list(row) for row in s.sql(step).collect()]
    except Exception as error:
        return {"error": type(error).__name__, "text": str(error)}


def main(where: str, steps: str, folder: str = "") -> None:
    """Run the steps at an address, or a port of this machine."""
    assert not any(name.startswith("frazil") for name in sys.modules)
    place = where if "://" in where else f"sc://127.0.0.1:{where}"
    first = SparkSession.builder.remote(place).getOrCreate()
    if folder:
        import frazil

        first.conf.set("spark.sql.session.timeZone", "UTC")
        lake = frazil.connect(first, warehouse=folder, name="lake")
        lake.create_namespace("db")
        lake.attach(name="lake")
    second = None
    with open(steps) as file:
        for step in json.load(file):
            if step.startswith("2:"):
                second = second or SparkSession.builder.remote(place).create()
                found = answer(second, step[2:])
            else:
                found = answer(first, step)
            print(json.dumps(found, default=str), flush=True)


if __name__ == "__main__":
    import os

    try:
        main(*sys.argv[1:])
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
