"""How hard the laws are tried: quick by default, `HYPOTHESIS_PROFILE=thorough` for a long search."""

import os

from hypothesis import HealthCheck, settings

# No deadline: the machine may be busy. No database: what fails is printed and becomes a test.
settings.register_profile(
    "quick", max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
