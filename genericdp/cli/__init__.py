"""What an operator can type.

Read `main` first: it has the table of verbs, and turns every mistake into an exit status. Each verb is a
file in `verbs`; it reads the machine, asks the core and prints the answer. Verbs share:

    options, usage, streams   how a command line is read; the state in which a shell leaves the streams
    survey, find, access      one look at the machine; what a word names; who may open a node
    output, text              tables, colours and JSON; the values of the core in these forms
    service, dry_run, loop    the daemon, with the kubelet or with a simulated one; its event loop
    observer                  what `monitor` sees without a daemon
    failure, exit_status      how a mistake or a bug is printed, and what the exit status says

Does not belong here: decisions. The core makes them.
"""
