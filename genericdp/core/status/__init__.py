"""How the daemon is doing: report, metrics, events, log lines.

Reading order:

    history      counts and times since the start
    holdings     which containers hold which devices
    logged       a warning or error that was logged
    facts        all of these at one moment
    complaints   what is wrong, as the report and the probes say it
    report       the facts as JSON, for `genericdp status`
    metrics      the facts as samples, in the text format of `exposition`
    news         what is worth a log line when the inventory changes
    wording      causes in words
    events       the events of `genericdp monitor`
    status_line  the line of `systemctl status`
    watchdog     whether the service manager may be told that all is well

The daemon loads report and metrics when somebody asks for them (`genericdp.status.answers`).

Does not belong here: clocks, sockets, log output. `genericdp.status` has them.
"""
