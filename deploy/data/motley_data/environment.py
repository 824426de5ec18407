"""What this Python has of what the program needs; the rest is said by name."""
import importlib
import os
import sys

from .errors import UNAVAILABLE, Refused

OLDEST_TRANSFORMERS = (4, 57)
OLDEST_JINJA = (3, 1, 6)   # older ones have ways out of the sandbox
HOW = "'motley data setup' makes a Python that has it, and --python or MOTLEY_DATA_PYTHON names another"


def quiet():
    """Before transformers is imported: it fetches nothing, starts no threads of its own and says only errors."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"] = "1"
    os.environ["USE_TORCH"] = "0"


def version_of(module):
    return tuple(int(part) for part in module.__version__.split(".")[:3] if part.isdigit())


def need(name, oldest):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise Refused(UNAVAILABLE, f"{sys.executable} has no {name} ({error}); {HOW}") from error
    if version_of(module) < oldest:
        wanted = ".".join(str(part) for part in oldest)
        raise Refused(UNAVAILABLE, f"{sys.executable} has {name} {module.__version__}, and {wanted} is the oldest that will do; {HOW}")
    return module


def check():
    """The versions that the tokens are made with."""
    quiet()
    need("numpy", ())
    need("jinja2", OLDEST_JINJA)
    tokenizers = need("tokenizers", ())
    transformers = need("transformers", OLDEST_TRANSFORMERS)
    return {"transformers": transformers.__version__, "tokenizers": tokenizers.__version__}


def need_parquet():
    try:
        return importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise Refused(UNAVAILABLE, f"{sys.executable} has no pyarrow, which reads Parquet; 'motley data setup --parquet' adds it") from error


def need_zstandard():
    try:
        return importlib.import_module("zstandard")
    except ImportError as error:
        raise Refused(UNAVAILABLE, f"{sys.executable} has no zstandard, which reads .zst; 'motley data setup' makes a Python that has it, "
                                   "and 'zstd -d FILE' unpacks the file") from error
