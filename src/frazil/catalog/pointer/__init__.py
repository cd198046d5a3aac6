"""Catalogs that apply updates here and swap a pointer to the new metadata file."""
