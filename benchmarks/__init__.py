"""Experiments whose tables come from result files; see README.md beside this file."""
