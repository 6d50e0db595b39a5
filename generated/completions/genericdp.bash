# Completion of genericdp for bash. Made by "make generate" from generate/shells/genericdp.bash.
#
# The shell never expands a candidate: text that a device supplies is quoted.

# _genericdp_options VERB: the options of a verb.
_genericdp_options() {
    case $1 in
    run) echo '--rules --config --domain' ;;
    check) echo '--format --json --rules --config --domain' ;;
    list) echo '--all --subsystem --json --rules --config --domain' ;;
    explain) echo '--serial --usb --json --rules --config --domain' ;;
    suggest) echo '--all --node --json --rules --config --domain' ;;
    monitor) echo '--touched --json --rules --config --domain' ;;
    status) echo '--watch --quiet --json --config' ;;
    probe) echo '--socket' ;;
    simulate) echo '--allocate --runtime --for --json --rules --config --domain' ;;
    schema) echo '' ;;
    esac
}

# _genericdp_kind VERB OPTION: the kind of an option's value (without OPTION, of an argument): "=" and all
# possible words, or a kind of generate/kinds.py; "" if it takes no value.
_genericdp_kind() {
    case $1:$2 in
    run:--rules) echo 'rules' ;;
    run:--config) echo 'files' ;;
    run:--domain) echo 'nothing' ;;
    check:--format) echo '=human json github' ;;
    check:--rules) echo 'rules' ;;
    check:--config) echo 'files' ;;
    check:--domain) echo 'nothing' ;;
    list:--subsystem) echo 'subsystems' ;;
    list:--rules) echo 'rules' ;;
    list:--config) echo 'files' ;;
    list:--domain) echo 'nothing' ;;
    explain:--serial) echo 'serials' ;;
    explain:--usb) echo 'usb' ;;
    explain:--rules) echo 'rules' ;;
    explain:--config) echo 'files' ;;
    explain:--domain) echo 'nothing' ;;
    suggest:--rules) echo 'rules' ;;
    suggest:--config) echo 'files' ;;
    suggest:--domain) echo 'nothing' ;;
    monitor:--rules) echo 'rules' ;;
    monitor:--config) echo 'files' ;;
    monitor:--domain) echo 'nothing' ;;
    status:--config) echo 'files' ;;
    probe:--socket) echo 'files' ;;
    simulate:--allocate) echo 'assignments' ;;
    simulate:--runtime) echo '=containerd cri-o' ;;
    simulate:--for) echo 'nothing' ;;
    simulate:--rules) echo 'rules' ;;
    simulate:--config) echo 'files' ;;
    simulate:--domain) echo 'nothing' ;;
    check:) echo 'rules' ;;
    list:) echo 'nothing' ;;
    explain:) echo 'subjects' ;;
    suggest:) echo 'nodes' ;;
    probe:) echo '=health readiness' ;;
    schema:) echo '=rules settings' ;;
    esac
}

# Adds the words on stdin that begin with the value to the candidates: one per line, with an optional
# description after a tab.
_genericdp_take() {
    local word quoted
    while IFS=$'\t' read -r word _; do
        if [[ $word == "$value"* ]]; then
            printf -v quoted %q "$word${1-}"
            _genericdp_candidates+=("$prefix$quoted")
        fi
    done
}

_genericdp_paths() {
    local path pattern home=
    compopt -o filenames 2>/dev/null
    [[ $value != "~/"* ]] || home=$HOME
    [[ -z $home ]] || value=$home${value:1}
    printf -v pattern %q "$value"
    while IFS= read -r path; do
        case $1 in
        rules) [[ -d $path || $path == *.toml ]] || continue ;;
        nodes) [[ -d $path || -c $path || -b $path ]] || continue ;;
        esac
        [[ -z $home ]] || path=\~${path#"$home"}
        _genericdp_candidates+=("$prefix$path")
    done < <(compgen -G "$pattern*")
}

# Splits a command line into words without quotes: `before`, and the word being typed, `token`. readline
# replaces only the part of it after `kept`, because characters like "=" separate words for readline.
_genericdp_split() {
    local line=$1 raw= quote= char i
    for ((i = 0; i < ${#line}; i++)); do
        char=${line:i:1}
        if [[ $quote == "'" && $char != "'" || $quote == '"' && $char != [\"\\] ]]; then
            token+=$char raw+=$char
        elif [[ $char == \\ ]]; then
            ((++i))
            token+=${line:i:1} raw+=x
        elif [[ -n $quote ]]; then
            quote=
        elif [[ $char == [\'\"] ]]; then
            quote=$char raw+=x
        elif [[ $char == [[:space:]] ]]; then
            [[ -z $raw ]] || before+=("$token")
            token= raw= kept=
        else
            token+=$char raw+=$char
            [[ $COMP_WORDBREAKS != *"$char"* ]] || kept=$token
        fi
    done
}

_genericdp() {
    local -a before=() _genericdp_candidates=()
    local token= kept= candidate
    _genericdp_split "${COMP_LINE:0:COMP_POINT}"
    local verb=${before[1]-} last=${before[*]: -1} prefix= value=$token kind= words
    COMPREPLY=()

    if ((${#before[@]} < 2)) || [[ $verb == help && ${#before[@]} == 2 ]]; then
        kind='=run check list explain suggest monitor status probe simulate schema help --help --version'
    elif [[ $token == --*=* ]]; then
        prefix=${token%%=*}= value=${token#*=}
        kind=$(_genericdp_kind "$verb" "${token%%=*}")
    elif [[ $last == -* && -n $(_genericdp_kind "$verb" "$last") ]]; then
        kind=$(_genericdp_kind "$verb" "$last")
    elif [[ $token == -* ]]; then
        kind="=$(_genericdp_options "$verb") --help"
    else
        kind=$(_genericdp_kind "$verb" '')
    fi

    case $kind in
    =*)
        read -ra words <<<"${kind#=}"
        _genericdp_take < <(printf '%s\n' "${words[@]}")
        ;;
    subjects)
        if [[ $value != /* ]]; then
            _genericdp_take < <("$1" complete subjects "${before[@]:1}" 2>/dev/null)
        fi
        if [[ -z $value ]]; then
            compopt -o filenames 2>/dev/null
            _genericdp_candidates+=("$prefix/dev/")
        elif ((${#_genericdp_candidates[@]} == 0)); then
            [[ $value == /* ]] || value=/dev/$value
            _genericdp_paths nodes
        fi
        ;;
    nodes)
        [[ $value == /* ]] || value=/dev/$value
        _genericdp_paths nodes
        ;;
    rules | files) _genericdp_paths "$kind" ;;
    assignments)
        compopt -o nospace 2>/dev/null
        _genericdp_take = < <("$1" complete resources "${before[@]:1}" 2>/dev/null)
        ;;
    '' | nothing) ;;
    *) _genericdp_take < <("$1" complete "$kind" "${before[@]:1}" 2>/dev/null) ;;
    esac

    for candidate in "${_genericdp_candidates[@]}"; do
        COMPREPLY+=("${candidate#"$kept"}")
    done
}

complete -F _genericdp genericdp
