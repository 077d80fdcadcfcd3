"""What people look at next, their answers, and the page that shows it."""
