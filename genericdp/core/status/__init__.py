"""How the daemon is doing: status report, metrics, events, log lines."""
