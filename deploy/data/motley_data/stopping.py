"""SIGTERM and Ctrl-C: what is half written goes, and the program ends at once.

By a thread that waits for them: a handler's exception may be taken by a library for its own, and libraries' threads take signals, too, so
that the one that reads goes on to wait.
"""
import os
import signal
import sys
import threading

STOPS = {signal.SIGTERM, signal.SIGINT}
_undo = []   # what is to be done first
_waiting = None


def before_stop(function):
    _undo.append(function)


def forget(function):
    if function in _undo:
        _undo.remove(function)


def _wait():
    number = signal.sigwait(STOPS)
    for function in list(_undo):
        function()
    os.write(sys.__stderr__.fileno(), b"motley: stopped; nothing was written\n")
    os._exit(128 + number)   # processes of its own see that and end


def install():
    global _waiting
    if _waiting is None:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        _waiting = threading.Thread(target=_wait, daemon=True)
        _waiting.start()


def leave_to_parent():
    """In a process of the pool: Ctrl-C reaches it, too, and its end is that of its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
