"""People's own data: folders, tables, arrays, and the files in them."""
