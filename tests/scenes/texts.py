"""Texts of rule files that are large in one way each, for tests of what it costs to read them."""

from collections.abc import Callable, Mapping

Text = Callable[[int], str]


def repeated(part: str, beginning: str = "", end: str = "") -> Text:
    """Texts of about so many characters. `{n}` in the part is a number that goes up."""

    def text(size: int) -> str:
        count = max(1, size // len(part))
        return beginning + "".join(part.replace("{n}", str(n)) for n in range(count)) + end

    return text


RULE = '[[resource]]\nname = "r{n}"\nmatch = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }\n'


#: What is in the file -> a text of a given size.
LARGE: Mapping[str, Text] = {
    "correct rules": repeated(RULE),
    "one mistake for each rule": repeated(RULE + "replicas = 0\n"),
    "misspelt keys": repeated('[[resource]]\nname = "r{n}"\nmach = { SUBSYSTEM = "tty" }\n'),
    "the same name": repeated('[[resource]]\nname = "r"\nmatch = { SUBSYSTEM = "tty" }\n'),
    "spaces": repeated(" ", "a = "),
    "spaces and commas": repeated(" ,", "a = "),
    "spaces and equals signs": repeated("= ", "a "),
    "spaces before a word": repeated(" ", "a =", "x y"),
    "a word": repeated("a", "a = ", " é"),
    "digits": repeated("1", "a = ", " é"),
    "zeros": repeated("0", "a = ", "é"),
    "keys": repeated("k{n} = 1\n"),
    "quoted keys": repeated('"\\u0041{n}" = 1\n'),
    "short dotted keys": repeated("a.b.c.k{n} = 1\n"),
    "headers": repeated("[k{n}]\n"),
    "arrays of tables": repeated("[[a]]\n[[a.b]]\n"),
    "a list": repeated("1, ", "a = [", "]"),
    "lists": repeated("[], ", "a = [", "]"),
    "a list that is deep inside others": repeated("1,", f"a = {'[' * 30}", "]" * 30),
    "lists below a dotted key": repeated("[],", f"{'a.' * 27}a = [", "]"),
    "inline tables": repeated("{a=1},", "a = [", "]"),
    "an inline table": repeated("k{n} = 1, ", "a = {", "z = 1}"),
    "a string": repeated("\\\\", 'a = "', '"'),
    "a string of lines": repeated('\\"\n""', 'a = """', '"""'),
    "a string without end": repeated('""\n', 'a = """'),
    "a literal string": repeated("''\n", "a = '''", "'''"),
    "numbers beyond 64 bits": repeated("9999999999999999999,", "a = [", "]"),
    "a header that is written twice": lambda size: f'["{" " * size}"]\n' * 2,
    "a key that is written twice": lambda size: f'"{" " * size}" = 1\n' * 2,
    "comments": repeated("# x\n"),
    "one comment": repeated("#"),
    "blank lines": repeated(" \n\t\r\n"),
    "globs": repeated('"*a*b{n}", ', '[[resource]]\nname = "r"\nmatch = { SUBSYSTEM = [', '"a"] }\n'),
    "names of nodes": repeated(
        '"/dev/x{n}", ', '[[resource]]\nname = "r"\nmatch = { DEVNAME = [', '"/dev/x"] }\n'
    ),
    "expressions": repeated(
        '{ regex = "(a?b+){9}{n}" }, ', '[[resource]]\nname = "r"\nmatch = { SUBSYSTEM = [', '"a"] }\n'
    ),
    "a long glob": repeated("*a", '[[resource]]\nname = "r"\nmatch = { SUBSYSTEM = "', '" }\n'),
    "a long expression": repeated(
        "a?", '[[resource]]\nname = "r"\nmatch = { SUBSYSTEM = { regex = "', '" } }\n'
    ),
    "a long name": repeated("a", '[[resource]]\nname = "', '"\n'),
    "a long annotation": repeated("a", '[[resource]]\nname = "r"\nannotations = { "', '" = "" }\n'),
    "a long template": repeated("{A|b}", '[[resource]]\nname = "r"\ncontainer_path = "/', '"\n'),
    "open braces": repeated("{", '[[resource]]\nname = "r"\ncontainer_path = "/', '"\n'),
    "a long duration": repeated("1", '[[resource]]\nname = "r"\nunplug_grace = "', 's"\n'),
    "a long key": repeated("a_", "[[resource]]\n", " = 1\n"),
    "nodes": repeated(
        '[[resource.node]]\ncontainer_path = "/a{n}"\n',
        '[[resource]]\nname = "r"\nmatch = { SUBSYSTEM = "tty" }\n',
    ),
    "envs": repeated(
        "a{n} = 'x', ", '[[resource]]\nname = "r"\nmatch = { SUBSYSTEM = "tty" }\nenv = {', "z = 'x' }\n"
    ),
}


#: The same of what is refused, whatever else is in it, because it is nested too deeply.
TOO_DEEP: Mapping[str, Text] = {
    "a dotted key": repeated(".a", "a", " = 1"),
    "a dotted header": repeated(".a", "[a", "]"),
    "a dotted header of an array": repeated(" . a", "[[a", "]]"),
    "a quoted dotted key": repeated(".'a'", '"a"', " = 1"),
    "lists": repeated("[", "a = "),
    "inline tables": repeated("{ a = ", "a = "),
    "both": repeated("[{ a.b = ", "[[a]]\nb = "),
    "a dotted key in an inline table": repeated(".a", "b = { a", " = 1 }"),
}
