#!/bin/sh
# Waits up to 20 s until every port has a listener: listening.sh tcp:5201 [udp:5201...]
# It reads the kernel's tables, so that the server does not see a connection. (procfs: state 0A listens, 07 is UDP's)
set -eu
for port in "$@"; do
    transport=${port%%:*} hexadecimal=$(printf %04X "${port##*:}")
    case $transport in
    tcp) state=0A ;;
    *) state=07 ;;
    esac
    tries=0
    until cat "/proc/net/$transport" "/proc/net/${transport}6" 2>/dev/null |
        grep -q -E "^ *[0-9]+: [0-9A-F]+:$hexadecimal [0-9A-F]+:[0-9A-F]{4} $state "; do
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || {
            echo "nothing listens on $port" >&2
            exit 1
        }
        sleep 0.1
    done
done
