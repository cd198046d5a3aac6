"""Rows become data files."""
