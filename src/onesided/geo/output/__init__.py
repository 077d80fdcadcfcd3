"""What the analyst takes away: layers, a style, a summary, a page."""
