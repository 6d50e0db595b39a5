"""How hard laws are tried: quick by default, `HYPOTHESIS_PROFILE=thorough` for a long search.

The rules of this file:

* `tests/conftest.py` imports it before any test, because `@given` takes the profile that is in force when
  Python reads it.
* Some laws are tried with each of many rules. In the quick profile, these share the search: what the rules
  have in common is tried with each of them. A thorough search is as long for each as for one.
"""

import os

from hypothesis import HealthCheck, settings

#: How many examples the quick profile tries, and with each of many rules.
_SOME, _FEW = 30, 6

# No deadline: the machine may be busy. No database: what fails is printed and becomes a test.
settings.register_profile(
    "quick", max_examples=_SOME, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

#: A decorator.
for_each_of_many = settings(max_examples=_FEW) if settings().max_examples == _SOME else settings()
