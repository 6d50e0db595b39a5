#compdef genericdp
# Completion of genericdp for zsh. Made by "make generate" from generate/shells/genericdp.zsh.

_genericdp_nodes() {
    if [[ $PREFIX == /* ]]; then
        _path_files -g '*(%,@,-/)'
    else
        _path_files -P /dev/ -W /dev -g '*(%,@,-/)'
    fi
}

_genericdp_rules() { _files -g '*.toml(-.)' }

# _genericdp_ask KIND [COMPADD-OPTION…]: candidates from `genericdp complete`.
_genericdp_ask() {
    local kind=$1 line
    local -a candidates
    shift
    for line in ${(f)"$(_call_program $kind ${(q)_genericdp_program} complete $kind ${(q)_genericdp_words} 2>/dev/null)"}; do
        candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    _describe -t $kind $kind candidates "$@"
}

_genericdp_resources() { _genericdp_ask resources }
_genericdp_assignments() { _genericdp_ask resources -S = }
_genericdp_subjects() {
    local ret=1
    [[ $PREFIX == /* ]] || { _genericdp_ask subjects && ret=0 }
    _genericdp_nodes && ret=0
    return ret
}
_genericdp_serials() { _genericdp_ask serials }
_genericdp_subsystems() { _genericdp_ask subsystems }
_genericdp_usb() { _genericdp_ask usb }

_genericdp() {
    local curcontext=$curcontext state line ret=1
    local _genericdp_program=$words[1]
    local -a _genericdp_words=("${(@Q)words[2,CURRENT-1]}")
    local -a verbs=(
        'run:run the daemon, which offers this machine'\''s devices to the kubelet'
        'check:check the rule files; print every mistake with its place'
        'list:list the devices that rules match, and the resource of each'
        'explain:explain why rules match a device or not, and what a container gets'
        'suggest:write the rule for a device; with --all, a first draft for all'
        'monitor:show device events, and what the kubelet is told, as they happen'
        'status:show what is registered, which pods hold devices, and what is wrong'
        'probe:ask if the daemon is healthy or ready, as a kubelet'\''s probes do'
        'simulate:try rules without a cluster: the daemon with a simulated kubelet'
        'schema:print the JSON Schema of rule files or settings, for editors'
        'help:all about a verb'
    )
    _arguments -C '(- *)--help[show help]' '(- *)--version[print the version]' \
        '1: :->verb' '*:: :->rest' && ret=0
    case $state in
    verb) _describe -t verbs verb verbs && ret=0 ;;
    rest)
        case $words[1] in
        help) (( CURRENT == 2 )) && _describe -t verbs verb verbs && ret=0 ;;
        run)
            _arguments -S \
                '(- *)--help[show help]' \
                '*--rules=[read these rules instead of the system'\''s; can be repeated; later ones win]:dir_or_file:_genericdp_rules' \
                '--config=[the daemon'\''s settings (default\: /etc/genericdp/genericdp.toml)]:file:_files' \
                '--domain=[the domain for resource names that have none, instead of the one in the settings]:domain: ' && ret=0
            ;;
        check)
            _arguments -S \
                '(- *)--help[show help]' \
                '--format=[for people, for programs, or as GitHub workflow commands (default\: human)]:format:(human json github)' \
                '--json[the same as --format=json]' \
                '*--rules=[read these rules instead of the system'\''s; can be repeated; later ones win]:dir_or_file:_genericdp_rules' \
                '--config=[the daemon'\''s settings (default\: /etc/genericdp/genericdp.toml)]:file:_files' \
                '--domain=[the domain for resource names that have none, instead of the one in the settings]:domain: ' \
                '*:dir_or_file:_genericdp_rules' && ret=0
            ;;
        list)
            _arguments -S \
                '(- *)--help[show help]' \
                '--all[also the device nodes that no rule matches, unless no pod asks for such]' \
                '*--subsystem=[only device nodes of this subsystem; can be repeated]:subsystem:_genericdp_subsystems' \
                '--json[print JSON, for programs]' \
                '*--rules=[read these rules instead of the system'\''s; can be repeated; later ones win]:dir_or_file:_genericdp_rules' \
                '--config=[the daemon'\''s settings (default\: /etc/genericdp/genericdp.toml)]:file:_files' \
                '--domain=[the domain for resource names that have none, instead of the one in the settings]:domain: ' \
                '*:word: ' && ret=0
            ;;
        explain)
            _arguments -S \
                '(- *)--help[show help]' \
                '--serial=[the device with this serial number]:serial:_genericdp_serials' \
                '--usb=[USB devices of this model]:vendor\:product:_genericdp_usb' \
                '--json[print JSON, for programs]' \
                '*--rules=[read these rules instead of the system'\''s; can be repeated; later ones win]:dir_or_file:_genericdp_rules' \
                '--config=[the daemon'\''s settings (default\: /etc/genericdp/genericdp.toml)]:file:_files' \
                '--domain=[the domain for resource names that have none, instead of the one in the settings]:domain: ' \
                '1:device:_genericdp_subjects' && ret=0
            ;;
        suggest)
            _arguments -S \
                '(- *)--help[show help]' \
                '--all[rules for everything that no rule matches yet]' \
                '--node[a rule for this device node alone, not for the whole device]' \
                '--json[print JSON, for programs]' \
                '*--rules=[read these rules instead of the system'\''s; can be repeated; later ones win]:dir_or_file:_genericdp_rules' \
                '--config=[the daemon'\''s settings (default\: /etc/genericdp/genericdp.toml)]:file:_files' \
                '--domain=[the domain for resource names that have none, instead of the one in the settings]:domain: ' \
                '1:device:_genericdp_nodes' && ret=0
            ;;
        monitor)
            _arguments -S \
                '(- *)--help[show help]' \
                '--touched[leave out uevents that affect no device of a resource]' \
                '--json[print JSON, for programs]' \
                '*--rules=[read these rules instead of the system'\''s; can be repeated; later ones win]:dir_or_file:_genericdp_rules' \
                '--config=[the daemon'\''s settings (default\: /etc/genericdp/genericdp.toml)]:file:_files' \
                '--domain=[the domain for resource names that have none, instead of the one in the settings]:domain: ' && ret=0
            ;;
        status)
            _arguments -S \
                '(- *)--help[show help]' \
                '--watch[repeat every 2 seconds, on a terminal]' \
                '--quiet[print only what is wrong]' \
                '--json[print JSON, for programs]' \
                '--config=[the daemon'\''s settings (default\: /etc/genericdp/genericdp.toml)]:file:_files' && ret=0
            ;;
        probe)
            _arguments -S \
                '(- *)--help[show help]' \
                '--socket=[the control socket of the daemon, control.sock in its run_dir (default\: /run/genericdp/control.sock)]:file:_files' \
                '1:what:(health readiness)' && ret=0
            ;;
        simulate)
            _arguments -S \
                '(- *)--help[show help]' \
                '*--allocate=[start a container that requests this, and show what it gets; can be repeated]:name=count:_genericdp_assignments' \
                '--runtime=[the container runtime to simulate]:runtime:(containerd cri-o)' \
                '--for=[stop after this many seconds instead of at Ctrl-C]:seconds: ' \
                '--json[print JSON, for programs, and exit as soon as the node is ready]' \
                '*--rules=[read these rules instead of the system'\''s; can be repeated; later ones win]:dir_or_file:_genericdp_rules' \
                '--config=[the daemon'\''s settings (default\: /etc/genericdp/genericdp.toml)]:file:_files' \
                '--domain=[the domain for resource names that have none, instead of the one in the settings]:domain: ' && ret=0
            ;;
        schema)
            _arguments -S \
                '(- *)--help[show help]' \
                '1:file:(rules settings)' && ret=0
            ;;
        esac
        ;;
    esac
    return ret
}

_genericdp "$@"
