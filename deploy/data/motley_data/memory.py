"""What a library took to load a file and has freed stays with the process until the C library is told to give it back."""
import ctypes
import gc


def give_back():
    """Of a vocabulary of 128,000 words it is 100 MB in each process."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):   # another C library than glibc
        pass
