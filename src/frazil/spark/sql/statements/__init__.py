"""Statements by kind: each is read word by word and run by the commands of tables."""
