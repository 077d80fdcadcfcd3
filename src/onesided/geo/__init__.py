"""Maps: footprints and images in, a score for every building out."""
