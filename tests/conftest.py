"""What holds for every test: property tests have no deadline, because the machine may be busy."""

from hypothesis import settings

settings.register_profile("beckon", deadline=None)
settings.load_profile("beckon")
