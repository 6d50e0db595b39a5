"""Real shells at a terminal of their own: what they offer when somebody presses the tab key."""

import contextlib
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.scenes.terminal import read_until

ROOT = Path(__file__).resolve().parents[2]
COMPLETIONS = ROOT / "generated" / "completions"

_END = "That is all."

#: Inserts all candidates into the line instead of showing them, and hands the line out.
_BASH = """
PS1=
bind 'set bell-style none'
bind '"\\C-x\\C-a": insert-completions'
bind -x '"\\C-x\\C-o": printf "%s" "$READLINE_LINE" >"$OUT"; READLINE_LINE=; echo "DO""NE"'
source {completions}/genericdp.bash
echo "REA""DY"
"""

#: Writes down what is added as a candidate; what compadd itself asks of compadd passes.
_ZSH = """
PROMPT=
unsetopt beep
fpath=({fpath} $fpath)
autoload -U compinit
compinit -D -u
compadd() {{
    if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then
        builtin compadd "$@"
        return
    fi
    typeset -a hits suffix prefix
    builtin compadd -A hits "$@"
    zparseopts -E -a suffix S: P:=prefix W: p:
    (( $#hits )) && print -rl -- ${{prefix[2]}}${{^hits}}${{${{(M)${{(j: :)suffix}}:#-S =*}}:+=}} >>$OUT
    builtin compadd "$@"
}}
done-widget() {{ BUFFER=; print -n "DO""NE" }}
zle -N done-widget
bindkey '^X^O' done-widget
bindkey '^X^A' complete-word
echo "REA""DY"
"""


def offered_by_bash(lines: Sequence[str], room: Path) -> list[set[str]]:
    """The candidates for the last word of each line."""
    rc = room / "bashrc"
    rc.write_text(_BASH.format(completions=COMPLETIONS))
    completed = _pressed(["bash", "--noprofile", "--rcfile", str(rc), "-i"], lines, room)
    return [_inserted(line, whole) for line, whole in zip(lines, completed, strict=True)]


def _inserted(line: str, completed: str) -> set[str]:
    kept = line.removesuffix(_last_word(line)) + _option(line)
    assert completed.startswith(kept), completed
    return set() if completed == line else {*shlex.split(completed.removeprefix(kept))}


def _option(line: str) -> str:
    """`--format=`, when the last word begins so."""
    option, joined, _ = _last_word(line).partition("=")
    return option + joined if joined else ""


def _last_word(line: str) -> str:
    return re.split(r"(?<!\\) ", line)[-1]


def offered_by_zsh(lines: Sequence[str], room: Path) -> list[set[str]]:
    """The candidates for the last word of each line; of paths the last component, as zsh shows them."""
    shutil.copy(COMPLETIONS / "genericdp.zsh", room / "_genericdp")
    (room / ".zshrc").write_text(_ZSH.format(fpath=room))
    found = _pressed(["zsh", "-i"], lines, room, ZDOTDIR=str(room))
    return [{word for hit in each.splitlines() for word in shlex.split(hit)} for each in found]


def offered_by_fish(lines: Sequence[str], room: Path) -> list[set[str]]:
    """The candidates for the last word of each line."""
    script = f"source {COMPLETIONS}/genericdp.fish\n"
    script += "".join(f"complete --do-complete {_fish_quoted(line)}; echo {_END}\n" for line in lines)
    told = subprocess.run(
        ["fish", "--no-config", "--command", script],
        env=_environment(room),
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stderr == ""
    answers = told.stdout.split(f"{_END}\n")[:-1]
    return [
        {each.partition("\t")[0].removeprefix(_option(line)) for each in answer.split("\n") if each}
        for line, answer in zip(lines, answers, strict=True)
    ]


def _environment(room: Path) -> dict[str, str]:
    programs = os.path.dirname(sys.executable)
    path = f"{room}/bin:{programs}:{os.environ['PATH']}"
    home = {"HOME": str(room), "XDG_CONFIG_HOME": str(room), "XDG_DATA_HOME": str(room)}
    return {"PATH": path, "TERM": "xterm", "LC_ALL": "C.UTF-8", "OUT": str(room / "out"), **home}


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _pressed(command: list[str], lines: Sequence[str], room: Path, **environment: str) -> Iterator[str]:
    """What the shell has written into $OUT for each line that was typed."""
    with _terminal(command, {**_environment(room), **environment}) as terminal:
        read_until(terminal, "READY")
        for line in lines:
            (room / "out").write_text("")
            os.write(terminal, line.encode() + b"\x18\x01")
            os.write(terminal, b"\x18\x0f")
            read_until(terminal, "DONE")
            yield (room / "out").read_text()


@contextlib.contextmanager
def _terminal(command: list[str], environment: dict[str, str]) -> Iterator[int]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    try:
        yield master
    finally:
        process.kill()
        process.wait()
        os.close(master)
