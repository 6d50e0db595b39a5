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
@verbs
@options
