"""The parts of the main job that `examples/flights.py` puts together."""
