"""What happens before and at a release: archives are built, checked and tried."""
