"""What the import of the stores costs in Python workers of Spark."""

from pathlib import Path

from programs import run_program


def test_jars_on_the_path_are_not_asked_for_plug_ins(tmp_path):
    printed = run_program(Path(__file__).with_name("imported_stores.py"), tmp_path).split()
    assert "some.zip" in printed
    assert "some.jar" not in printed
