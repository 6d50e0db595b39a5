"""Completion for the shells: the scripts in `shells/`, filled with the verbs and options of the parsers."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from generate.kinds import Kind, kind
from generate.verbs import Option, Verb, verbs

SHELLS = Path(__file__).parent / "shells"


def completions() -> Iterator[tuple[str, str]]:
    """Name and text of each script."""
    for shell, parts in {"bash": _bash(), "fish": _fish(), "zsh": _zsh()}.items():
        name = f"genericdp.{shell}"
        text = (SHELLS / name).read_text(encoding="utf-8")
        for word, part in parts.items():
            text = text.replace(f"@{word}", part)
        yield name, text


def _bash() -> Mapping[str, str]:
    options = [f"    {verb.name}) echo '{_flags(verb)}' ;;" for verb in verbs()]
    kinds = [
        f"    {verb.name}:{flag}) echo '{_bash_kind(verb, option)}' ;;"
        for verb in verbs()
        for option in (*verb.options, *verb.arguments)
        if option.value
        for flag in option.flags or ["*"]
    ]
    names = " ".join(verb.name for verb in verbs())
    # Arguments come last, because their pattern matches every option.
    kinds.sort(key=lambda line: ":*)" in line)
    kinds = [line.replace(":*)", ":)") for line in kinds]
    return {
        "options": "\n".join(options),
        "kinds": "\n".join(kinds),
        "verbs": f"{names} help --help --version",
    }


def _bash_kind(verb: Verb, option: Option) -> str:
    return f"={' '.join(option.choices)}" if option.choices else kind(verb.name, option)


def _flags(verb: Verb) -> str:
    return " ".join(flag for option in verb.options for flag in option.flags)


def _zsh() -> Mapping[str, str]:
    shown = [f"{verb.name}:{verb.summary}" for verb in verbs()] + ["help:all about a verb"]
    return {
        "verbs": "\n".join(f"        {_quoted(each)}" for each in shown),
        "cases": "\n".join(
            f"        {verb.name})\n{_zsh_arguments(verb)}\n            ;;" for verb in verbs()
        ),
    }


def _zsh_arguments(verb: Verb) -> str:
    specs = ["(- *)--help[show help]"]
    specs += [_zsh_option(verb, option, flag) for option in verb.options for flag in option.flags]
    for place, argument in enumerate(verb.arguments, start=1):
        where = "*" if argument.nargs in ("*", "+") else str(place)
        specs.append(f"{where}:{argument.value.lower()}:{_zsh_action(verb, argument)}")
    lines = "".join(f" \\\n                {_quoted(spec)}" for spec in specs)
    return f"            _arguments -S{lines} && ret=0"


def _zsh_option(verb: Verb, option: Option, flag: str) -> str:
    description = option.help.replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
    if not option.value:
        return f"{flag}[{description}]"
    value = option.value.lower().replace(":", "\\:")
    joined = "=" if flag.startswith("--") else "+"
    return f"{'*' * option.repeatable}{flag}{joined}[{description}]:{value}:{_zsh_action(verb, option)}"


def _zsh_action(verb: Verb, option: Option) -> str:
    if option.choices:
        return f"({' '.join(option.choices)})"
    match kind(verb.name, option):
        case Kind.NOTHING:
            return " "
        case Kind.FILES:
            return "_files"
        case other:
            return f"_genericdp_{other}"


def _fish() -> Mapping[str, str]:
    start = "complete --command genericdp --condition"
    shown = [(verb.name, verb.summary) for verb in verbs()] + [("help", "all about a verb")]
    names = [
        f"{start} __genericdp_no_verb --arguments {name} --description {_fish_quoted(summary)}"
        for name, summary in shown
    ]
    options = [
        f"{start} '__genericdp_verb {verb.name}'{_fish_option(verb, option)}"
        for verb in verbs()
        for option in (*verb.options, *verb.arguments)
    ]
    return {"verbs": "\n".join(names), "options": "\n".join(options)}


def _fish_option(verb: Verb, option: Option) -> str:
    flags = "".join(f" --{_fish_length(flag)}-option {flag.lstrip('-')}" for flag in option.flags)
    description = f" --description {_fish_quoted(option.help)}"
    if not option.value:
        return f"{flags}{description}"
    needs = " --exclusive" * bool(option.flags)
    return (
        f"{flags}{needs}{_FISH_ACTIONS[_fish_kind(verb, option)](option)}{description * bool(option.flags)}"
    )


def _fish_length(flag: str) -> str:
    return "long" if flag.startswith("--") else "short"


def _fish_kind(verb: Verb, option: Option) -> Kind | None:
    return None if option.choices else kind(verb.name, option)


_FISH_ACTIONS: Mapping[Kind | None, Callable[[Option], str]] = {
    None: lambda option: f" --arguments '{' '.join(option.choices)}'",
    Kind.NOTHING: lambda _: "",
    Kind.FILES: lambda _: " --arguments '(__genericdp_files)'",
    Kind.RULES: lambda _: " --arguments '(__genericdp_rules)'",
    Kind.NODES: lambda _: " --arguments '(__genericdp_nodes)'",
    Kind.ASSIGNMENTS: lambda _: " --arguments '(__genericdp_assignments)'",
    Kind.RESOURCES: lambda _: " --arguments '(__genericdp_ask resources)'",
    Kind.SUBJECTS: lambda _: " --arguments '(__genericdp_ask subjects; __genericdp_nodes)'",
    Kind.SERIALS: lambda _: " --arguments '(__genericdp_ask serials)'",
    Kind.SUBSYSTEMS: lambda _: " --arguments '(__genericdp_ask subsystems)'",
    Kind.USB: lambda _: " --arguments '(__genericdp_ask usb)'",
}


def _quoted(text: str) -> str:
    quoted = text.replace("'", "'\\''")
    return f"'{quoted}'"


def _fish_quoted(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"
