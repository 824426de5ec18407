"""How much longer than on a machine of its own a test waits before it says that something did not come. No test fails by how long
something took; what a wait gives up is said to have not happened."""
import os

FACTOR = float(os.environ.get("MOTLEY_PATIENCE") or 1)


def patience(seconds):
    return seconds * FACTOR
