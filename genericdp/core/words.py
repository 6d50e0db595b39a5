"""English for messages: wording that several messages share."""

from collections.abc import Iterable


def counted(number: int, noun: str) -> str:
    """`1 device`, `2 devices`; for nouns that take an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listing(words: Iterable[str], conjunction: str = "and") -> str:
    """`'a', 'b' and 'c'`."""
    quoted = [f"'{word}'" for word in words]
    return f"{', '.join(quoted[:-1])} {conjunction} {quoted[-1]}" if len(quoted) > 1 else "".join(quoted)


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6, shown: str = "{}") -> str:
    """`did you mean '…'?` with the closest of the known words, or "" when none is close.

    cutoff  how similar a word has to be, from 0 to 1
    shown   how the word is written there
    """
    known = list(known)
    part = next((each for each in known if word in each.split("_")), None)
    if part is not None:
        return f"did you mean '{shown.format(part)}'?"
    try:
        import difflib  # noqa: PLC0415  (only mistakes need it, and the daemon stays small)
    except OSError:
        return ""  # a shortage
    found = difflib.get_close_matches(word, known, n=1, cutoff=cutoff)
    return f"did you mean '{shown.format(found[0])}'?" if found else ""


def kind_of(value: object) -> str:
    """What a TOML value is: `the number 5`, `a table`."""
    match value:
        case bool():
            return f"the boolean {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the string '{value}'"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"
