"""What an analyst gives: images, footprints, marked buildings."""
