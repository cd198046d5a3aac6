"""Whether the tests find faults: `src/frazil` is broken in places, one at a time, and tests run.

`sites` are the places and what becomes of them, `sequence` their order, `record` which cases ran
which line, `choice` the cases for a place, `trees` a copy that is broken, `trial` what its cases
said, `run` all of it.
"""
