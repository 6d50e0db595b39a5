"""The declarations of the program as blocks: verbs, options, keys, settings, conditions, fields.

The rules of this file:

* The words come from the declarations.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from generate.blocks import Block, Command, Commands, Example, Heading, Paragraph, Term, Terms
from generate.values import default, form
from generate.verbs import Option, Verb, verbs
from genericdp.cli.exit_status import STATUSES
from genericdp.core.reading.match import CONDITION_DOCS, PROPERTY_DOCS, USB_DOCS
from genericdp.core.reading.pattern import FORM_DOCS
from genericdp.core.reading.resource import MOUNT_KEYS, NODE_KEYS, PRESTART_KEYS, RESOURCE_KEYS
from genericdp.core.reading.settings import SETTINGS_KEYS
from genericdp.core.reading.table import Key
from genericdp.core.rules.template import FIELDS

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

#: TOML wants quotes around a key that is not a plain word.
_QUOTED = {name: f'"{name}"' for name in CONDITION_DOCS if "{" in name}

TABLES = {
    "resource": RESOURCE_KEYS,
    "node": NODE_KEYS,
    "mount": MOUNT_KEYS,
    "prestart": PRESTART_KEYS,
    "settings": SETTINGS_KEYS,
}


def declared(word: str, argument: str) -> Iterator[Block]:
    """What `@word argument` stands for."""
    return iter(_DECLARED[word](argument))


def keys(table: str, more: Mapping[str, str]) -> Terms:
    """The keys of a table. `more` is what a page adds, by names of keys."""
    unknown = more.keys() - {key.name for key in TABLES[table]}
    if unknown:
        raise KeyError(f"a page says more about keys that do not exist: {unknown}")
    return Terms("key", tuple(_key(key, more.get(key.name, "")) for key in TABLES[table]))


def _key(key: Key, more: str) -> Term:
    written = default(key)
    return Term(
        f"`{key.name}`",
        key.doc,
        value=_marked(form(key.schema)),
        default="required" if key.required else written and f"`{written}`",
        more=more,
    )


def _marked(value: str) -> str:
    """The possible values of a key. Literal values are typed, the rest are placeholders."""
    return re.sub('("[^"]*")', r"`\1`", value) if '"' in value else f"*{value}*"


def synopsis() -> Iterator[str]:
    """The command line of each verb, with its options."""
    return map(_line, verbs())


def _line(verb: Verb) -> str:
    words = [f"`genericdp` `{verb.name}`"]
    words += [f"[{_typed(option)}]" + "..." * option.repeatable for option in verb.own_options]
    words += ["[*rule options*]"] * verb.reads_rules
    words += [_argument(argument) for argument in verb.arguments]
    return " ".join(words)


def _argument(argument: Option) -> str:
    shown = "|".join(f"`{choice}`" for choice in argument.choices) or f"*{argument.value}*"
    return {"?": f"[{shown}]", "*": f"[{shown}...]"}.get(argument.nargs or "", shown)


def _typed(option: Option) -> str:
    """An option as it is typed."""
    names = ", ".join(f"`{flag}`" for flag in option.flags)
    value = "|".join(f"`{choice}`" for choice in option.choices) or f"*{option.value}*"
    return f"{names} {value}" if option.value else names


def _verbs(_: str) -> Iterator[Block]:
    for verb in verbs():
        yield Heading(3, verb.name)
        yield Paragraph(verb.description)
        arguments = [Term(_argument(argument), argument.help) for argument in verb.arguments]
        terms = (*arguments, *_options(verb.own_options))
        if terms:
            yield Terms("option", terms)
        if verb.examples:
            yield Paragraph("Examples:")
            yield Commands(tuple(_examples(verb.examples)))


def _options(options: tuple[Option, ...]) -> Iterator[Term]:
    return (Term(_typed(option), option.help) for option in options)


def _examples(text: str) -> Iterator[Command]:
    """Command lines; what they do stands behind two spaces, if at all."""
    for line in text.splitlines():
        command, _, doc = line.strip().partition("  ")
        yield Command(command, doc.strip())


def _rule_options(_: str) -> Iterator[Block]:
    reading = [verb for verb in verbs() if verb.reads_rules]
    ones = {tuple(option for option in verb.options if option not in verb.own_options) for verb in reading}
    (options,) = ones  # the same for every verb
    names = ", ".join(f"`{verb.name}`" for verb in reading)
    yield Paragraph(f"{names} have these options:")
    yield Terms("option", tuple(_options(options)))


def _statuses(_: str) -> Iterator[Block]:
    yield Terms("status", tuple(Term(f"`{status}`", doc) for status, doc in STATUSES.items()))


def _named(kind: str, docs: Mapping[str, str], name: str = "{}") -> Callable[[str], Iterator[Block]]:
    terms = tuple(Term(f"`{name.format(each)}`", doc) for each, doc in docs.items())
    return lambda _: iter([Terms(kind, terms)])


def _example(name: str) -> Iterator[Block]:
    yield Example("toml", (EXAMPLES / name).read_text(encoding="utf-8").rstrip("\n"))


_DECLARED: Mapping[str, Callable[[str], Iterator[Block]]] = {
    "verbs": _verbs,
    "rule-options": _rule_options,
    "statuses": _statuses,
    "conditions": _named("condition", {_QUOTED.get(name, name): doc for name, doc in CONDITION_DOCS.items()}),
    "properties": _named("property", PROPERTY_DOCS),
    "usb": _named("key", USB_DOCS),
    "forms": _named("form", FORM_DOCS, "{{ {} = … }}"),
    "fields": _named("field", FIELDS, "{{{}}}"),
    "example": _example,
}
