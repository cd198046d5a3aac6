"""Parquet footers: what is read out of them and written into them."""
