"""Buildings as the images show them: windows, chips, who is held out."""
