"""`genericdp run`: the daemon, in the foreground, as a service manager starts it."""

import argparse
import signal

from genericdp import log
from genericdp.cli.exit_status import DEAD_MOUNT
from genericdp.cli.options import add_rule_options, open_rules


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Offer the devices that the rules match to the kubelet of this node, until SIGTERM. Rule files "
        "are read again when they change; SIGHUP makes the daemon read all of them, and every device, again."
    )
    add_rule_options(parser)


def run(*, rules: list[str], config: str | None, domain: str | None) -> int:
    """Run until a signal. Returns 0, or DEAD_MOUNT if the pod needs a new container."""
    # By default, SIGHUP would end the process. Until the daemon handles it, nothing needs to be read again.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    settings, rule_files = open_rules(rules, config, domain)
    log.configure(settings.log_format, settings.log_level)
    from genericdp.cli.service import serve  # noqa: PLC0415  (see the rules of that file)

    return 0 if serve(settings, rule_files) else DEAD_MOUNT
