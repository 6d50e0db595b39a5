"""A number with its noun."""


def counted(number: int, noun: str) -> str:
    """`1 device`, `2 devices`; for nouns that take an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
