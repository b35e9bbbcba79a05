"""How the script ends when it can not do what it was asked."""
import sys


class Failure(Exception):
    """One line for the user, and the exit status."""

    def __init__(self, text, status=1):
        super().__init__(text)
        self.status = status


def refusal(text):
    return Failure(text, status=2)


def say(text):
    print(f"offline_profile: {text}", file=sys.stderr)
