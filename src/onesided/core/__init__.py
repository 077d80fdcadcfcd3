"""Nouns and services that import nothing of ours."""
