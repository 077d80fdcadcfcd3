"""Every table and figure of a publication, measured by command and shown beside its numbers."""
