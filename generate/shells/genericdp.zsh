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
@verbs
    )
    _arguments -C '(- *)--help[show help]' '(- *)--version[print the version]' \
        '1: :->verb' '*:: :->rest' && ret=0
    case $state in
    verb) _describe -t verbs verb verbs && ret=0 ;;
    rest)
        case $words[1] in
        help) (( CURRENT == 2 )) && _describe -t verbs verb verbs && ret=0 ;;
@cases
        esac
        ;;
    esac
    return ret
}

_genericdp "$@"
