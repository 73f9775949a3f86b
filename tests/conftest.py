"""What holds for every test: property tests have no deadline, because the machine may be busy.

In CI they try the same examples every time, so that a change is judged by itself; on a
developer's machine they go on exploring, and what they find becomes a test of its own.
"""

import os

from hypothesis import settings

settings.register_profile("explore", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")
