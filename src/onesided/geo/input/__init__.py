"""What an analyst brings: images, footprints, marks."""
