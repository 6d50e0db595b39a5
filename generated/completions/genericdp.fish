# Completion of genericdp for fish. Made by "make generate" from generate/shells/genericdp.fish.

function __genericdp_verb -a verb
    set -l words (commandline --tokenize --current-process --cut-at-cursor)
    test "$words[2]" = $verb
end

function __genericdp_no_verb
    set -l words (commandline --tokenize --current-process --cut-at-cursor)
    test (count $words) -lt 2
    or test "$words[2]" = help -a (count $words) -lt 3
end

function __genericdp_ask -a kind
    set -l words (commandline --tokenize --current-process --cut-at-cursor)
    $words[1] complete $kind $words[2..] 2>/dev/null
end

function __genericdp_assignments
    __genericdp_ask resources | string replace --regex '^([^\t]*)' '$1='
end

function __genericdp_nodes
    set -l path (__genericdp_value)
    string match --quiet '/*' -- $path
    or set path /dev/$path
    __fish_complete_path $path
end

function __genericdp_files
    set -l path (__genericdp_value)
    if string match --quiet '~/*' -- $path
        __fish_complete_path (string replace '~' $HOME -- $path) | string replace $HOME '~'
    else
        __fish_complete_path $path
    end
end

function __genericdp_rules
    __genericdp_files | string match --regex '.*(?:/|\.toml)(?:\t.*)?$'
end

# The typed part of a value, without quotes.
function __genericdp_value
    set -l token (commandline --current-token | string replace --regex '^--[a-z-]+=' '')
    string unescape -- $token
    or string unescape -- $token\'
    or string unescape -- $token\"
end

complete --command genericdp --no-files
complete --command genericdp --condition __genericdp_no_verb --long-option help --description 'show help'
complete --command genericdp --condition __genericdp_no_verb --long-option version --description 'print the version'
complete --command genericdp --condition __genericdp_no_verb --arguments run --description 'run the daemon, which offers this machine\'s devices to the kubelet'
complete --command genericdp --condition __genericdp_no_verb --arguments check --description 'check the rule files; print every mistake with its place'
complete --command genericdp --condition __genericdp_no_verb --arguments list --description 'list the devices that rules match, and the resource of each'
complete --command genericdp --condition __genericdp_no_verb --arguments explain --description 'explain why rules match a device or not, and what a container gets'
complete --command genericdp --condition __genericdp_no_verb --arguments suggest --description 'write the rule for a device; with --all, a first draft for all'
complete --command genericdp --condition __genericdp_no_verb --arguments monitor --description 'show device events, and what the kubelet is told, as they happen'
complete --command genericdp --condition __genericdp_no_verb --arguments status --description 'show what is registered, which pods hold devices, and what is wrong'
complete --command genericdp --condition __genericdp_no_verb --arguments probe --description 'ask if the daemon is healthy or ready, as a kubelet\'s probes do'
complete --command genericdp --condition __genericdp_no_verb --arguments simulate --description 'try rules without a cluster: the daemon with a simulated kubelet'
complete --command genericdp --condition __genericdp_no_verb --arguments schema --description 'print the JSON Schema of rule files or settings, for editors'
complete --command genericdp --condition __genericdp_no_verb --arguments help --description 'all about a verb'
complete --command genericdp --condition '__genericdp_verb run' --long-option rules --exclusive --arguments '(__genericdp_rules)' --description 'read these rules instead of the system\'s; can be repeated; later ones win'
complete --command genericdp --condition '__genericdp_verb run' --long-option config --exclusive --arguments '(__genericdp_files)' --description 'the daemon\'s settings (default: /etc/genericdp/genericdp.toml)'
complete --command genericdp --condition '__genericdp_verb run' --long-option domain --exclusive --description 'the domain for resource names that have none, instead of the one in the settings'
complete --command genericdp --condition '__genericdp_verb check' --long-option format --exclusive --arguments 'human json github' --description 'for people, for programs, or as GitHub workflow commands (default: human)'
complete --command genericdp --condition '__genericdp_verb check' --long-option json --description 'the same as --format=json'
complete --command genericdp --condition '__genericdp_verb check' --long-option rules --exclusive --arguments '(__genericdp_rules)' --description 'read these rules instead of the system\'s; can be repeated; later ones win'
complete --command genericdp --condition '__genericdp_verb check' --long-option config --exclusive --arguments '(__genericdp_files)' --description 'the daemon\'s settings (default: /etc/genericdp/genericdp.toml)'
complete --command genericdp --condition '__genericdp_verb check' --long-option domain --exclusive --description 'the domain for resource names that have none, instead of the one in the settings'
complete --command genericdp --condition '__genericdp_verb check' --arguments '(__genericdp_rules)'
complete --command genericdp --condition '__genericdp_verb list' --long-option all --description 'also the device nodes that no rule matches, unless no pod asks for such'
complete --command genericdp --condition '__genericdp_verb list' --long-option subsystem --exclusive --arguments '(__genericdp_ask subsystems)' --description 'only device nodes of this subsystem; can be repeated'
complete --command genericdp --condition '__genericdp_verb list' --long-option json --description 'print JSON, for programs'
complete --command genericdp --condition '__genericdp_verb list' --long-option rules --exclusive --arguments '(__genericdp_rules)' --description 'read these rules instead of the system\'s; can be repeated; later ones win'
complete --command genericdp --condition '__genericdp_verb list' --long-option config --exclusive --arguments '(__genericdp_files)' --description 'the daemon\'s settings (default: /etc/genericdp/genericdp.toml)'
complete --command genericdp --condition '__genericdp_verb list' --long-option domain --exclusive --description 'the domain for resource names that have none, instead of the one in the settings'
complete --command genericdp --condition '__genericdp_verb list'
complete --command genericdp --condition '__genericdp_verb explain' --long-option serial --exclusive --arguments '(__genericdp_ask serials)' --description 'the device with this serial number'
complete --command genericdp --condition '__genericdp_verb explain' --long-option usb --exclusive --arguments '(__genericdp_ask usb)' --description 'USB devices of this model'
complete --command genericdp --condition '__genericdp_verb explain' --long-option json --description 'print JSON, for programs'
complete --command genericdp --condition '__genericdp_verb explain' --long-option rules --exclusive --arguments '(__genericdp_rules)' --description 'read these rules instead of the system\'s; can be repeated; later ones win'
complete --command genericdp --condition '__genericdp_verb explain' --long-option config --exclusive --arguments '(__genericdp_files)' --description 'the daemon\'s settings (default: /etc/genericdp/genericdp.toml)'
complete --command genericdp --condition '__genericdp_verb explain' --long-option domain --exclusive --description 'the domain for resource names that have none, instead of the one in the settings'
complete --command genericdp --condition '__genericdp_verb explain' --arguments '(__genericdp_ask subjects; __genericdp_nodes)'
complete --command genericdp --condition '__genericdp_verb suggest' --long-option all --description 'rules for everything that no rule matches yet'
complete --command genericdp --condition '__genericdp_verb suggest' --long-option node --description 'a rule for this device node alone, not for the whole device'
complete --command genericdp --condition '__genericdp_verb suggest' --long-option json --description 'print JSON, for programs'
complete --command genericdp --condition '__genericdp_verb suggest' --long-option rules --exclusive --arguments '(__genericdp_rules)' --description 'read these rules instead of the system\'s; can be repeated; later ones win'
complete --command genericdp --condition '__genericdp_verb suggest' --long-option config --exclusive --arguments '(__genericdp_files)' --description 'the daemon\'s settings (default: /etc/genericdp/genericdp.toml)'
complete --command genericdp --condition '__genericdp_verb suggest' --long-option domain --exclusive --description 'the domain for resource names that have none, instead of the one in the settings'
complete --command genericdp --condition '__genericdp_verb suggest' --arguments '(__genericdp_nodes)'
complete --command genericdp --condition '__genericdp_verb monitor' --long-option touched --description 'leave out uevents that affect no device of a resource'
complete --command genericdp --condition '__genericdp_verb monitor' --long-option json --description 'print JSON, for programs'
complete --command genericdp --condition '__genericdp_verb monitor' --long-option rules --exclusive --arguments '(__genericdp_rules)' --description 'read these rules instead of the system\'s; can be repeated; later ones win'
complete --command genericdp --condition '__genericdp_verb monitor' --long-option config --exclusive --arguments '(__genericdp_files)' --description 'the daemon\'s settings (default: /etc/genericdp/genericdp.toml)'
complete --command genericdp --condition '__genericdp_verb monitor' --long-option domain --exclusive --description 'the domain for resource names that have none, instead of the one in the settings'
complete --command genericdp --condition '__genericdp_verb status' --long-option watch --description 'repeat every 2 seconds, on a terminal'
complete --command genericdp --condition '__genericdp_verb status' --long-option quiet --description 'print only what is wrong'
complete --command genericdp --condition '__genericdp_verb status' --long-option json --description 'print JSON, for programs'
complete --command genericdp --condition '__genericdp_verb status' --long-option config --exclusive --arguments '(__genericdp_files)' --description 'the daemon\'s settings (default: /etc/genericdp/genericdp.toml)'
complete --command genericdp --condition '__genericdp_verb probe' --long-option socket --exclusive --arguments '(__genericdp_files)' --description 'the control socket of the daemon, control.sock in its run_dir (default: /run/genericdp/control.sock)'
complete --command genericdp --condition '__genericdp_verb probe' --arguments 'health readiness'
complete --command genericdp --condition '__genericdp_verb simulate' --long-option allocate --exclusive --arguments '(__genericdp_assignments)' --description 'start a container that requests this, and show what it gets; can be repeated'
complete --command genericdp --condition '__genericdp_verb simulate' --long-option runtime --exclusive --arguments 'containerd cri-o' --description 'the container runtime to simulate'
complete --command genericdp --condition '__genericdp_verb simulate' --long-option for --exclusive --description 'stop after this many seconds instead of at Ctrl-C'
complete --command genericdp --condition '__genericdp_verb simulate' --long-option json --description 'print JSON, for programs, and exit as soon as the node is ready'
complete --command genericdp --condition '__genericdp_verb simulate' --long-option rules --exclusive --arguments '(__genericdp_rules)' --description 'read these rules instead of the system\'s; can be repeated; later ones win'
complete --command genericdp --condition '__genericdp_verb simulate' --long-option config --exclusive --arguments '(__genericdp_files)' --description 'the daemon\'s settings (default: /etc/genericdp/genericdp.toml)'
complete --command genericdp --condition '__genericdp_verb simulate' --long-option domain --exclusive --description 'the domain for resource names that have none, instead of the one in the settings'
complete --command genericdp --condition '__genericdp_verb schema' --arguments 'rules settings'
