"""Where files that are not in docs/ are on the site."""

ADDRESS = "https://github.com/onesided/onesided/blob/main"
OUTSIDE = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "ROADMAP.md": "project/roadmap.md",
    "SECURITY.md": "project/security.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "benchmarks/README.md": "project/measuring.md",
}
"""File of the repository to its page of the site; others are linked in the repository."""
