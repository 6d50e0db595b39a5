"""The manual pages: the texts in `pages/`, with everything in its place that the program declares.

The rules of this file:

* A line of a page that begins with `@` stands for what a declaration says, so no verb, option, key or
  setting can be forgotten or made up.
* `@keys TABLE` is followed by `@ NAME` and more about that key, for keys that need more, up to `@end`.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from generate.roff import bold, entry, example, italic, literal, prose, sentence, short_lines
from generate.values import default, form
from generate.verbs import Option, Verb, verbs
from genericdp import RELEASED, VERSION
from genericdp.cli.main import STATUSES
from genericdp.core.reading.match import CONDITION_DOCS, PROPERTY_DOCS, USB_DOCS
from genericdp.core.reading.pattern import FORM_DOCS
from genericdp.core.reading.resource import MOUNT_KEYS, NODE_KEYS, PRESTART_KEYS, RESOURCE_KEYS
from genericdp.core.reading.settings import SETTINGS_KEYS
from genericdp.core.reading.table import Key
from genericdp.core.rules.template import FIELDS

PAGES = Path(__file__).parent / "pages"
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

TABLES = {
    "resource": RESOURCE_KEYS,
    "node": NODE_KEYS,
    "mount": MOUNT_KEYS,
    "prestart": PRESTART_KEYS,
    "settings": SETTINGS_KEYS,
}


def manpages() -> Iterator[tuple[str, str]]:
    """Name and text of each page."""
    for path in sorted(PAGES.iterdir()):
        name, section = path.name.rsplit(".", 1)
        head = f'.\\" Made by "make generate" from generate/pages/{path.name}.\n'
        head += f'.TH {literal(name.upper())} {section} {RELEASED} "genericdp {VERSION}" "genericdp"\n'
        head += ".nh\n.ad l\n"
        yield path.name, head + short_lines(_filled(path.read_text(encoding="utf-8")))


def _filled(text: str) -> str:
    lines = iter(text.splitlines())
    return "".join(f"{_directive(line[1:], lines) if line.startswith('@') else line}\n" for line in lines)


def _directive(line: str, lines: Iterator[str]) -> str:
    word, _, argument = line.partition(" ")
    if word == "keys":
        return _keys(TABLES[argument], _more(lines))
    return _SIMPLE[word](argument)


def _more(lines: Iterator[str]) -> Mapping[str, str]:
    """What stands up to `@end`, by the names of the keys."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if line == "@end":
            break
        if line.startswith("@ "):
            name = line[2:]
            found[name] = []
        else:
            found[name].append(line)
    return {name: "\n".join(each) for name, each in found.items()}


def _keys(keys: tuple[Key, ...], more: Mapping[str, str]) -> str:
    unknown = more.keys() - {key.name for key in keys}
    if unknown:
        raise KeyError(f"a page says more about keys that there are not: {unknown}")
    return "\n".join(_key(key, more.get(key.name, "")) for key in keys)


def _key(key: Key, more: str) -> str:
    said = sentence(key.doc)
    if key.required:
        said += " Required."
    elif written := default(key):
        said += f" Default: {bold(written)}."
    return entry(f"{bold(key.name)} = {italic(form(key.schema))}", said, *([more] if more else []))


def _synopsis(_: str) -> str:
    lines = []
    for verb in verbs():
        words = [f"{bold('genericdp')} {bold(verb.name)}"]
        words += [f"[{_typed(option)}]" + "\\|.\\|.\\|." * option.repeatable for option in verb.own_options]
        words += ["[\\fIrule options\\fR]"] * verb.reads_rules
        words += [_argument(argument) for argument in verb.arguments]
        lines.append(" ".join(words))
    return "\n.br\n".join(lines)


def _argument(argument: Option) -> str:
    shown = "|".join(bold(choice) for choice in argument.choices) or italic(argument.value)
    match argument.nargs:
        case "?":
            return f"[{shown}]"
        case "*":
            return f"[{shown}\\|.\\|.\\|.]"
        case _:
            return shown


def _typed(option: Option) -> str:
    """An option as it is typed."""
    names = ", ".join(bold(flag) for flag in option.flags)
    value = "|".join(bold(choice) for choice in option.choices) or italic(option.value)
    return f"{names} {value}" if option.value else names


def _verbs(_: str) -> str:
    return "\n".join(_about(verb) for verb in verbs())


def _about(verb: Verb) -> str:
    parts = [f".SS {literal(verb.name)}", prose(verb.description)]
    parts += [entry(_argument(argument), sentence(argument.help)) for argument in verb.arguments]
    parts += _options(verb.own_options)
    if verb.examples:
        parts += [".PP", "Examples:", *_examples(verb.examples)]
    return "\n".join(parts)


def _examples(text: str) -> Iterator[str]:
    """Command lines with what they do, if that is said, behind two spaces."""
    for line in text.splitlines():
        command, _, said = line.strip().partition("  ")
        yield entry(bold(command), *([sentence(said.strip())] if said else []))


def _options(options: tuple[Option, ...]) -> list[str]:
    return [entry(_typed(option), sentence(option.help)) for option in options]


def _rule_options(_: str) -> str:
    reading = [verb for verb in verbs() if verb.reads_rules]
    ones = {tuple(option for option in verb.options if option not in verb.own_options) for verb in reading}
    (options,) = ones  # the same for every verb
    names = ", ".join(bold(verb.name) for verb in reading)
    return "\n".join([f"{names} take these:", *_options(options)])


def _statuses(_: str) -> str:
    return "\n".join(entry(bold(str(status)), sentence(said)) for status, said in STATUSES.items())


def _named(docs: Mapping[str, str], shown: Callable[[str], str] = bold) -> Callable[[str], str]:
    return lambda _: "\n".join(entry(shown(name), sentence(doc)) for name, doc in docs.items())


def _example(name: str) -> str:
    return example((EXAMPLES / name).read_text(encoding="utf-8"))


_SIMPLE: Mapping[str, Callable[[str], str]] = {
    "synopsis": _synopsis,
    "verbs": _verbs,
    "rule-options": _rule_options,
    "statuses": _statuses,
    "conditions": _named(CONDITION_DOCS, lambda name: bold(f'"{name}"' if "{" in name else name)),
    "properties": _named(PROPERTY_DOCS),
    "usb": _named(USB_DOCS),
    "forms": _named(FORM_DOCS, lambda name: f"{{ {bold(name)} = \\fI.\\|.\\|.\\fR }}"),
    "fields": _named(FIELDS, lambda name: bold(f"{{{name}}}")),
    "example": _example,
}
