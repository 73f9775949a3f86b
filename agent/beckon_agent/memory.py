"""The memory that nobody needs: not taken, or given back after the start."""

import ctypes
import gc
import sys


def spare() -> None:
    """Keep Pydantic's first version out: FastAPI loads it, 1.7 MB, to look for models of it."""
    # `None` is how Python is told that a module cannot be imported, and FastAPI is prepared for that.
    sys.modules.setdefault("pydantic.v1", None)  # type: ignore[arg-type]  # typeshed knows modules only


def settle() -> None:
    """Free what the start left behind, and let later collections pass over what stays.

    Imports leave holes of some five megabytes, which glibc keeps unless it is asked.
    """
    gc.collect()
    gc.freeze()
    # What a run makes goes with it: a look for cycles after every 700 objects takes a twentieth of its time.
    gc.set_threshold(10_000, 20, 50)
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)
