"""The folder that is written: under another name beside its place, and renamed when it is whole."""
import fcntl
import json
import os
import shutil

from .errors import CANNOT_CREATE, TRY_AGAIN, Refused
from .stopping import before_stop, forget

MANIFEST = "tokens.json"
TRIES = 5   # to remove it while a file is still written there


class OutFolder:
    """Holds `.NAME.preparing` for itself, by a lock that goes with the process: what a killed program left is cleared away."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.partial = os.path.join(os.path.dirname(self.path), f".{os.path.basename(self.path)}.preparing")
        self._check_place()
        self._lock = self._take()
        try:
            self._clear()
        except BaseException:
            os.close(self._lock)
            raise
        before_stop(self.abandon)

    def _check_place(self):
        if os.path.lexists(self.path):
            raise Refused(CANNOT_CREATE, f"{self.path} is there already; give another --out, or remove it")

    def _take(self):
        try:
            os.makedirs(self.partial, exist_ok=True)   # tokens/, too, of tokens/chats
            lock = os.open(self.partial, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Refused(CANNOT_CREATE, f"{self.partial}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The one who had it may have renamed or removed it between the two calls.
            there = os.stat(self.partial)
            if (there.st_dev, there.st_ino) != (os.fstat(lock).st_dev, os.fstat(lock).st_ino):
                raise BlockingIOError
        except (BlockingIOError, FileNotFoundError) as error:
            os.close(lock)
            raise Refused(TRY_AGAIN, f"another motley data prepare writes {self.path}; wait for its end or give another --out") from error
        return lock

    def _clear(self):
        for name in os.listdir(self.partial):
            path = os.path.join(self.partial, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)

    def file(self, name):
        return os.path.join(self.partial, name)

    def finish(self, manifest):
        """tokens.json comes last: a folder without it is none."""
        text = json.dumps(manifest, sort_keys=True, indent=1, ensure_ascii=True) + "\n"
        with open(self.file(MANIFEST), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.fsync(self._lock)
        try:
            os.rename(self.partial, self.path)
        except OSError as error:
            raise Refused(CANNOT_CREATE, f"{self.path}: {error.strerror}; somebody else made it meanwhile") from error
        forget(self.abandon)
        self._sync_parent()
        os.close(self._lock)
        self._lock = None

    def _sync_parent(self):
        parent = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)

    def abandon(self):
        """After an error: nothing of it stays."""
        if self._lock is None:
            return
        forget(self.abandon)
        for _ in range(TRIES):
            shutil.rmtree(self.partial, ignore_errors=True)
            if not os.path.exists(self.partial):
                break
        os.close(self._lock)
        self._lock = None
