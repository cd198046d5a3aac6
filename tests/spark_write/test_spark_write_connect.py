"""Writing needs no JVM beside the session: Spark Connect, in a process of its own."""

from pathlib import Path

import pytest

from programs import run_program


@pytest.mark.soak
def test_writes_through_spark_connect(connect_url, tmp_path):
    script = Path(__file__).with_name("connect_check.py")
    assert run_program(script, connect_url, tmp_path).strip().endswith("written")
