"""`genericdp run`: the daemon, in the foreground, as a service manager starts it.

The rules of this file:

* The daemon is loaded when it runs: who asks for the help, the manual or completion of the verb does
  not wait for gRPC.
"""

import argparse
import resource
import signal

from genericdp import log
from genericdp.cli.options import add_rule_options, open_rules
from genericdp.core.rules.settings import Settings
from genericdp.files.rulefiles import RuleFiles
from genericdp.systemd import Notify

#: How many descriptors are enough for thousands of resources.
_DESCRIPTORS = 16384

_log = log.get(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serve the devices that the rules name to the kubelet of this node, until SIGTERM. SIGHUP reads "
        "the rules again; so does a change of a rule file by itself."
    )
    add_rule_options(parser)


def run(*, rules: list[str], config: str | None, domain: str | None) -> int:
    """Run until a signal. Returns 0."""
    # Its default is to end us. Until we can follow it there is nothing to read again.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _raise_limit_of_descriptors()
    settings, rule_files = open_rules(rules, config, domain)
    log.configure(settings.log_format, settings.log_level)
    for problem in rule_files.problems:
        _log.error(f"{problem.location}: {problem.message}", hint=problem.hint)
    import asyncio  # noqa: PLC0415  (see the rules of this file)

    asyncio.run(_serve(settings, rule_files))
    return 0


def _raise_limit_of_descriptors() -> None:
    """A shell's usual 1024 are for programs that select(2); each resource takes a few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(settings: Settings, rule_files: RuleFiles) -> None:
    import asyncio  # noqa: PLC0415

    from genericdp.daemon import Daemon  # noqa: PLC0415

    daemon = Daemon(settings, rule_files, notify=Notify.from_environment())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.stop)
    loop.add_signal_handler(signal.SIGHUP, daemon.reload)
    await daemon.run()
