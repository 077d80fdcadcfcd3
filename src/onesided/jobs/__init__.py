"""Whole jobs: settings and data in, a result out. Every door (command, Python) calls these.

A job takes paths, names and numbers, reports to a `Monitor`, and returns a frozen result. It
prints nothing and never exits.
"""
