"""The exit statuses of the program, and what each tells the caller: a shell, a test, a service manager."""

FINE = 0
NOT_FINE = 1
USAGE = 2
BUG = 3
DEAD_MOUNT = 4
INTERRUPTED = 130
#: What a shell reports for a program that writes to a closed pipe.
BROKEN_PIPE = 141

#: What each one means, except 141, which shells define.
STATUSES = {
    FINE: "all is well",
    NOT_FINE: "something is wrong: a mistake in a rule file, a device that is not offered",
    USAGE: "the command line is wrong",
    BUG: "a bug in genericdp; it prints what to report",
    DEAD_MOUNT: "the kubelet's directory, which this pod mounts, was deleted: start a new container",
    INTERRUPTED: "interrupted by Ctrl-C",
}
