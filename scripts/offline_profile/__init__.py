"""The parts of scripts/offline_profile.py."""
