"""`genericdp check`: every mistake in the settings and the rule files, each with its place."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from genericdp.cli.options import add_rule_options, are_all_rules, open_rules
from genericdp.cli.output import Output, Style, Styled
from genericdp.cli.survey import Affected, BareNode, affected, bare_nodes
from genericdp.core.explain.unfound import unfound
from genericdp.core.hostile import for_terminal
from genericdp.core.rules.pitfalls import pitfalls
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import DEFAULT_DOMAIN, Settings
from genericdp.core.words import counted
from genericdp.cri.sockets import RuntimeUnavailableError, candidates
from genericdp.errors import ConfigError, Problem
from genericdp.files.overlooked import notes
from genericdp.files.rulefiles import RULE_DIRECTORIES, RuleFiles

#: How many remarks of one kind are made.
MOST_REMARKS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Check rule files and settings, and print every mistake with its place and what to do "
        "about it. Needs nothing else, so it runs anywhere: on a laptop, in CI, in an image build. On a node "
        "with the daemon, it also says which devices would have to wait until a pod has gone, and which ones "
        "pods would lose because the rules no longer match them. "
        "Exits with status 1 if there is a mistake."
    )
    parser.epilog = (
        "examples:\n"
        "  genericdp check                      the settings and rules of this machine\n"
        "  genericdp check my.toml rules/       these instead\n"
        "  genericdp check --format=github .    in a GitHub workflow, as annotations"
    )
    parser.add_argument(
        "paths", metavar="DIR_OR_FILE", nargs="*", help="what to check instead of the system's rule files"
    )
    parser.add_argument(
        "--format",
        choices=("human", "json", "github"),
        default="human",
        help="for people, for programs, or as GitHub workflow commands (default: human)",
    )
    parser.add_argument(
        "--json", dest="format", action="store_const", const="json", help="the same as --format=json"
    )
    add_rule_options(parser)


def run(*, paths: list[str], format: str, rules: list[str], config: str | None, domain: str | None) -> int:  # noqa: A002  (an option's name)
    """Print every mistake. Returns 0 when there is none, else 1."""
    places = [*rules, *paths]
    problems: tuple[Problem, ...] = ()
    waits: tuple[Affected, ...] = ()
    lost: tuple[Affected, ...] = ()
    bare: tuple[BareNode, ...] = ()
    notes_on_runtime: tuple[str, ...] = ()
    try:
        settings, rule_files = open_rules(places, config, domain)
        notes_on_runtime = without_runtime(settings, rule_files.resources)
        if not errors_in(rule_files.problems):
            waits, lost = affected(settings, rule_files.resources, are_all=are_all_rules(places))
        bare = bare_nodes(rule_files.resources)
    except ConfigError as error:
        # A mistake in the settings must not hide those in the rule files.
        problems = error.problems
        rule_files = RuleFiles(places or RULE_DIRECTORIES, domain or DEFAULT_DOMAIN)
    problems += rule_files.problems
    output = Output(sys.stdout)
    match format:
        case "json":
            output.json(as_json(rule_files, problems, waits, bare, lost))
        case "github":
            for problem in problems:
                print(as_workflow_command(problem))
            show_summary(rule_files, problems, output)
        case _:
            doubts = doubts_about(rule_files.resources)[:MOST_REMARKS]
            remarks = (*doubts, *notes_on_runtime, *of_bare_nodes(bare), *in_words(waits, lost))
            show(rule_files, problems, output, (*notes(rule_files.places), *remarks))
    return 1 if errors_in(problems) else 0


def show(
    rule_files: RuleFiles, problems: Sequence[Problem], output: Output, remarks: Sequence[str] = ()
) -> None:
    """The mistakes for people, then remarks and what was checked."""
    for problem in problems:
        output.problem(problem)
        output.line()
    for remark in remarks:
        output.paragraph(f"note: {remark}")
    show_summary(rule_files, problems, output)


def show_summary(rule_files: RuleFiles, problems: Sequence[Problem], output: Output) -> None:
    """What was checked, with the result, in one line."""
    errors = errors_in(problems)
    if errors:
        wrong = {problem.location.file for problem in errors}
        output.line(Styled(f"{counted(len(errors), 'mistake')} in {counted(len(wrong), 'file')}", Style.BAD))
    elif rule_files.files:
        checked = (
            f"{counted(len(rule_files.files), 'rule file')}, {counted(len(rule_files.resources), 'resource')}"
        )
        output.line(f"{checked}: ", Styled("no mistakes", Style.GOOD))
    else:
        output.paragraph(f"no rule files in {', '.join(rule_files.places)}")


def without_runtime(settings: Settings, resources: Iterable[Resource]) -> tuple[str, ...]:
    """A remark if rules need the container runtime's socket and this machine has none."""
    names = [resource.name for resource in resources if resource.follows]
    if not names:
        return ()
    try:
        candidates(settings.runtime_socket)
    except RuntimeUnavailableError as error:
        return (f"{', '.join(names[:MOST_REMARKS])}: containers cannot be stopped: {error}; {error.hint}",)
    return ()


def doubts_about(resources: Sequence[Resource]) -> list[str]:
    """What rules say but hardly mean, and what programs would not find, a sentence each."""
    return [*pitfalls(resources), *(str(each) for resource in resources for each in unfound(resource))]


def errors_in(problems: Sequence[Problem]) -> list[Problem]:
    """Those that keep a file from being used."""
    return [problem for problem in problems if problem.severity == "error"]


def in_words(waits: Sequence[Affected], lost: Sequence[Affected] = ()) -> list[str]:
    """A remark for each device that has to wait, and for each that a pod would lose, but not for too many."""
    remarks = [
        f"{each.id} of {each.resource} would have to wait: {each.reason}" for each in waits[:MOST_REMARKS]
    ]
    if len(waits) > MOST_REMARKS:
        remarks.append(f"{counted(len(waits) - MOST_REMARKS, 'more device')} would have to wait")
    remarks += [
        f"a container that has {each.id} of {each.resource} could not start again: {each.reason}"
        for each in lost[:MOST_REMARKS]
    ]
    if len(lost) > MOST_REMARKS:
        more = counted(len(lost) - MOST_REMARKS, "more device")
        remarks.append(f"containers with {more} could not start again either")
    return remarks


def of_bare_nodes(nodes: Sequence[BareNode]) -> list[str]:
    """A remark about those that each resource takes, and one for each that it would not get."""
    taken: dict[str, list[str]] = {}
    for each in nodes:
        if not each.refusal:
            taken.setdefault(each.resource, []).append(each.node)
    return [
        *(
            f"{resource}: udev does not know {_listed(paths)}; an id stands for a path there, not for a "
            "physical unit"
            for resource, paths in taken.items()
        ),
        *(f"{each.resource} would not get {each.node}: {each.refusal}" for each in nodes if each.refusal),
    ][:MOST_REMARKS]


def _listed(paths: Sequence[str]) -> str:
    more = len(paths) - MOST_REMARKS
    return ", ".join(paths[:MOST_REMARKS]) + (f" and {more} more" if more > 0 else "")


def as_json(
    rule_files: RuleFiles,
    problems: Sequence[Problem],
    waits: Sequence[Affected] = (),
    bare: Sequence[BareNode] = (),
    lost: Sequence[Affected] = (),
) -> dict[str, object]:
    """What was found, for programs. Keys are only ever added."""
    return {
        "files": [file.path for file in rule_files.files],
        "resources": [resource.name for resource in rule_files.resources],
        "problems": [
            {
                "file": problem.location.file,
                "line": max(1, problem.location.line),
                "column": problem.location.column,
                "length": problem.location.length,
                "severity": problem.severity,
                "message": problem.message,
                "hint": problem.hint,
            }
            for problem in problems
        ],
        "waiting": [*map(asdict, waits)],
        "lost": [*map(asdict, lost)],
        "bareNodes": [
            {"node": each.node, "resource": each.resource, "reason": each.refusal} for each in bare
        ],
        "pitfalls": doubts_about(rule_files.resources),
    }


def as_workflow_command(problem: Problem) -> str:
    """The mistake as a line that makes GitHub put a note beside the line of the file."""
    location = problem.location
    place = {
        "file": location.file,
        "line": str(max(1, location.line)),
        "col": str(location.column),
        "endColumn": str(location.column + location.length - 1),
        "title": "genericdp check",
    }
    where = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in place.items())
    hint = f"\nhint: {problem.hint}" if problem.hint else ""
    return f"::{problem.severity} {where}::{_escaped(problem.message + hint)}"


def _escaped(text: str, more: str = "") -> str:
    """Escaped as the runner expects; the result is harmless to a terminal too."""
    for char in "%\r\n" + more:
        text = text.replace(char, f"%{ord(char):02X}")
    return for_terminal(text)
