"""What the cases of the command line share: exit statuses, and a command that must fail."""
from harness import expect

USAGE, DATA, NO_INPUT, UNAVAILABLE, CONFIG = 64, 65, 66, 69, 78   # the last of daemons, and of plans that the engine does not run


def refused(done, words, statuses=None):
    """The command failed, and its message holds all the words."""
    expect(done.returncode != 0, f"status 0, printed {done.stdout[-300:]!r}")
    expect(statuses is None or done.returncode in statuses, f"status {done.returncode}, expected {statuses}: {done.stderr[-300:]!r}")
    for word in words:
        expect(word in done.stderr, f"{word!r} is not in {done.stderr[-500:]!r}")
