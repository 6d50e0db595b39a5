"""Why a udev device is offered or not, and what a container gets.

Read `survey` first: one look at a machine, which most functions here take. Then `explanation`, which
answers for a device that is there, and `absent` for one that is not:

    lookup, query         which device an operator means, by a word or by what is known of it
    explanation           where a device goes, from the opinion of each resource
    opinion, near_misses  how one resource judges a device; how near the device comes to being taken
    absent                what is known of a device that is not plugged in
    container, access     what a container gets with a device, and who may open it there
    library_paths         which device nodes libraries find only under the kernel's name
    unfound               the rules that give such a node another name
    origin                which udev device has a property that a template names
    model                 what a device calls itself
    selection             which device nodes a list shows

Does not belong here: the verdicts themselves (`rules.match` judges, for the daemon too), tables and JSON
(`genericdp.cli.text`), and reading the machine (`genericdp.cli.survey`).
"""
