"""Giving back the memory that only the start needed."""

import ctypes
import gc
import sys


def settle() -> None:
    """Free what the start left behind, and let later collections pass over what stays.

    Imports leave holes of some five megabytes, which glibc keeps unless it is asked.
    """
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)
