"""Buildings as the images show them: where they are, their chips, which are held out."""
