"""Experiments whose tables are made from result files; see README.md beside this file."""
