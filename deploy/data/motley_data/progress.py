"""How far a run is, and how long it takes yet: said from two seconds on."""
import sys
import time

QUIET_SECONDS, TERMINAL_SECONDS, LOG_SECONDS = 2, 0.5, 30


def size(count):
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count} bytes"


def duration(seconds):
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Progress:
    def __init__(self, sources, stream=None):
        self._sources, self._stream = sources, stream or sys.stderr
        self._begin = self._last = time.monotonic()
        self._is_terminal, self._drawn = self._stream.isatty(), False
        self._total = sum(source.bytes for source in sources)

    def tick(self):
        now = time.monotonic()
        if now - self._begin < QUIET_SECONDS or now - self._last < (TERMINAL_SECONDS if self._is_terminal else LOG_SECONDS):
            return
        self._last = now
        self._write(self.line(now - self._begin))

    def line(self, seconds):
        done = sum(source.done for source in self._sources)
        share = done / self._total if self._total else 1
        left = f", about {duration(seconds * (1 - share) / share)} left" if share > 0.01 else ""
        return f"{100 * share:.0f} % of {size(self._total)} read, {size(int(done / seconds))}/s{left}"

    def say(self, text):
        """What a user should know, on a line of its own."""
        self.end()
        self._stream.write(f"motley: {text}\n")
        self._stream.flush()

    def stage(self, text):
        """What comes behind the reading, where that takes a while."""
        if self._is_terminal and time.monotonic() - self._begin >= QUIET_SECONDS:
            self._write(text)

    def _write(self, text):
        if self._is_terminal:
            self._stream.write(f"\r\x1b[Kmotley: {text}")
            self._drawn = True
        else:
            self._stream.write(f"motley: {text}\n")
        self._stream.flush()

    def end(self):
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False
