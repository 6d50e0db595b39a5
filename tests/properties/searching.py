"""How hard a law is tried that is tried with each of many rules: in the quick profile, they share the search.

What the rules have in common is tried with each of them. A thorough search is as long for each as for one.
"""

from hypothesis import settings

#: How many examples the quick profile tries with each of the rules.
_FEW = 8

_is_quick = settings().max_examples == settings.get_profile("quick").max_examples

#: A decorator.
for_each_of_many = settings(max_examples=_FEW) if _is_quick else settings()
