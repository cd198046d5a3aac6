"""Counts of a snapshot's rows, from as little metadata as tells them."""
