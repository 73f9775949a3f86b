"""A replica that has taken a call and never ends it: run as a process, to be killed."""

import asyncio

from beckon_tools.settings import Settings
from beckon_tools.testing import Trial
from tests.tools.serving import call
from tests.tools.test_outcomes import stuck

if __name__ == "__main__":
    asyncio.run(Trial(stuck, Settings()).deliver(call("process.stuck", {})))
