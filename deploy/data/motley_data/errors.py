"""How the program ends: a code of sysexits.h, and a sentence that names the thing, the place and what to do."""
import errno

USAGE, DATA, NO_INPUT, UNAVAILABLE, SOFTWARE = 64, 65, 66, 69, 70
CANNOT_CREATE, IO, TRY_AGAIN, NOT_ALLOWED = 73, 74, 75, 77


class Refused(Exception):
    """Ends the run."""

    def __init__(self, code, message):
        super().__init__(code, message)   # as arguments: it goes from process to process
        self.code, self.message = code, message


class BadRecord(Exception):
    """One line or row that cannot be taken. It ends the run unless --skip-bad allows for it."""


def one_line(error):
    """What a library said, in one line that fits a message."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:300] + " ..."


def from_os(error, path):
    """Of an OSError that nobody took: what a user can do about it."""
    path = error.filename or path
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Refused(IO, f"{path}: the disk is full; free some space or give an --out on another disk")
    if error.errno == errno.EFBIG:
        return Refused(IO, f"{path}: a file may not grow as large here (ulimit -f)")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Refused(NOT_ALLOWED, f"{path}: {error.strerror}")
    if error.errno == errno.ENOENT:
        return Refused(NO_INPUT, f"{path} is not there")
    return Refused(IO, f"{path}: {error.strerror or error}")
