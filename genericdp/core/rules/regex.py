"""Regular expressions that are matched in one pass over the value: `Regex(text).matches(value)`.

The rules of this file:

* A device chooses the value, so no value may cost more than another of its length. The places of the
  expression that can match the next character are known all at once, as the bits of a number; nothing
  is ever tried and taken back (V. M. Glushkov, The abstract theory of automata, 1961).
* What a character leads to is worked out when it first happens and then kept, within a limit.
* `Regex(text).matches(value)` is `re.fullmatch(text, value, re.DOTALL) is not None`.
"""

import re

from genericdp.core.rules.expression import (
    BadExpressionError,
    Characters,
    Choice,
    Part,
    Repeat,
    Sequence,
    beginning,
    parse,
)

#: An expression has so many parts at the most, with its repetitions written out.
PARTS_LIMIT = 500

#: So many steps are kept. A device may invent values, but it does not make the daemon grow.
_KEPT_LIMIT = 1000

#: The place behind the whole expression.
_END = 1


class _State(dict[str, "_State"]):
    """The places that can match the next character, and the states to which characters lead."""

    __slots__ = ("places",)

    def __init__(self, places: int) -> None:
        super().__init__()
        self.places = places


class Regex:
    """A compiled regular expression.

    beginning  what every value begins with that it matches
    parts      how many parts it has, with its repetitions written out
    """

    __slots__ = (
        "_kept",
        "_matching",
        "_places",
        "_reach",
        "_start",
        "_states",
        "_width",
        "beginning",
        "parts",
    )

    def __init__(self, text: str) -> None:
        """Raises BadExpressionError."""
        places = self._places = _Places()
        tree = parse(text)
        self._start = _State(places.add(tree, _END))
        self.beginning = beginning(tree)
        self.parts = places.parts
        self._width = len(places.after) // 8 + 1
        self._forget()

    def matches(self, value: str) -> bool:
        """Whether the whole value matches."""
        state = self._start
        for char in value:
            following = state.get(char)
            state = self._step(state, char) if following is None else following
            if not state.places:
                return False
        return bool(state.places & _END)

    def _forget(self) -> None:
        self._kept = 0
        self._states: dict[int, _State] = {self._start.places: self._start}
        self._matching: dict[str, int] = {}
        self._reach: dict[tuple[int, int], int] = {}

    def _step(self, state: _State, char: str) -> _State:
        """Where a character leads from a state, worked out and kept."""
        if self._kept == _KEPT_LIMIT:
            for each in self._states.values():
                each.clear()
            self._forget()
        matching = self._matching.get(char)
        if matching is None:
            matching = self._matching[char] = self._places.that_match(char)
        places = self._after(state.places & matching)
        following = self._states.get(places)
        if following is None:
            following = self._states[places] = _State(places)
        state[char] = following
        self._kept += 1
        return following

    def _after(self, places: int) -> int:
        """The places that come after any of these. Eight at a time, or a long expression would take long."""
        after = 0
        for index, eight in enumerate(places.to_bytes(self._width, "little")):
            if eight:
                reach = self._reach.get((index, eight))
                if reach is None:
                    reach = self._reach[index, eight] = self._places.after_eight(index, eight)
                after |= reach
        return after


class _Places:
    """The places of an expression at which a character is matched, each with those that can follow it.

    after     place -> the places that can come next, as bits. Place 0 is the end.
    parts     how many parts have been added
    literals  character -> the places that match it alone
    sets      source of a set -> the places that match it
    """

    def __init__(self) -> None:
        self.after = [0]
        self.parts = 0
        self._literals: dict[str, int] = {}
        self._sets: dict[re.Pattern[str], int] = {}

    def add(self, part: Part, after: int) -> int:
        """Add the places of a part, behind which come the places `after`. Returns where it can begin."""
        self.parts += 1
        if self.parts > PARTS_LIMIT:
            raise BadExpressionError(
                f"with its repetitions written out it has more than {PARTS_LIMIT} parts",
                "repeat with '*' or '+', or write a list of expressions",
            )
        match part:
            case Characters(source):
                return self._add_characters(source, after)
            case Sequence(parts):
                for each in reversed(parts):
                    after = self.add(each, after)
                return after
            case Choice(options):
                begin = 0
                for each in options:
                    begin |= self.add(each, after)
                return begin
            case _:
                return self._add_repeat(part, after)

    def _add_repeat(self, repeat: Repeat, after: int) -> int:
        if repeat.most is None:
            after = self._add_loop(repeat.part, after)
        else:
            for _ in range(repeat.most - repeat.least):
                after |= self.add(repeat.part, after)
        for _ in range(repeat.least):
            after = self.add(repeat.part, after)
        return after

    def _add_characters(self, source: str, after: int) -> int:
        place = self._new(after)
        if len(source) == 1 and source != ".":
            self._literals[source] = self._literals.get(source, 0) | place
        else:
            compiled = re.compile(source, re.DOTALL)
            self._sets[compiled] = self._sets.get(compiled, 0) | place
        return place

    def _add_loop(self, part: Part, after: int) -> int:
        # While the part is added, it is not known yet where it begins: a place that matches nothing
        # stands for that.
        again = self._new(0)
        first = len(self.after)
        begin = (self.add(part, after | again) | after) & ~again
        for place in range(first, len(self.after)):
            if self.after[place] & again:
                self.after[place] = self.after[place] & ~again | begin
        return begin

    def _new(self, after: int) -> int:
        self.after.append(after)
        return 1 << (len(self.after) - 1)

    def that_match(self, char: str) -> int:
        """The places that match a character."""
        places = self._literals.get(char, 0)
        for characters, those in self._sets.items():
            if characters.fullmatch(char):
                places |= those
        return places

    def after_eight(self, index: int, eight: int) -> int:
        """The places that come after any of eight places: the bits of a byte, the `index`th of a number."""
        after = 0
        for bit in range(8):
            if eight >> bit & 1:
                after |= self.after[8 * index + bit]
        return after
