"""Files that survive a kill: atomic writes, journals, locks, tables. Imports no torch."""
