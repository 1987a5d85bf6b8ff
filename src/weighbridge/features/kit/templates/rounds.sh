# shellcheck shell=dash
# What the run.sh of every environment has in common. Read in the kit's own folder.

# what is set already wins over .env, as for Docker Compose
already=$(export -p)
set -a
# shellcheck source=/dev/null
. ./.env
set +a
eval "$already"

if docker compose version >/dev/null 2>&1; then
    program='docker compose'
else
    program=docker-compose
fi
environment='' cell='' folder='' results='' prepared='' pid='' failed=0 up='' container='' finishing=''

compose() {
    # shellcheck disable=SC2086 # it may be two words
    CELL=$cell $program --env-file .env -p "kit-$environment" -f "environments/$environment/compose.yaml" "$@"
}

begin() { # begin ENVIRONMENT SERVER CLIENT SOLO: where the roles are (compose, native), the service of solo programs
    environment=$1 server=$2 client=$3 solo=$4
    trap finish EXIT
    trap 'exit 130' INT TERM HUP
    [ "$server$client" = nativenative ] || image
}

image() { # builds the image where there is none of its name, and writes down what it has
    docker image inspect "$IMAGE" >/dev/null 2>&1 || docker build -t "$IMAGE" .
    mkdir -p results
    docker run --rm --network none --entrypoint dpkg-query "$IMAGE" -W >results/versions.txt || rm results/versions.txt
}

place() { # place ROLE: compose or native
    case $1 in
    client) echo "$client" ;;
    *) echo "$server" ;;
    esac
}

native() { # native ROLE SCRIPT: becomes the program, on the CPUs of its role
    case $1 in
    client) cpus=${CLIENT_CPUS:-} ;;
    *) cpus=${SERVER_CPUS:-} ;;
    esac
    if [ -n "$cpus" ]; then
        exec taskset -c "$cpus" sh "$2"
    fi
    exec sh "$2"
}

run_role() { # run_role ROLE SCRIPT [INPUT]: to its end
    role=$1
    [ "$role" != solo ] || role=$solo
    if [ "$(place "$role")" = native ]; then
        (native "$role" "$folder/$2.sh") <"${3:-/dev/null}"
    else
        up=yes
        compose run --rm -T --no-deps "$role" sh "/kit/$folder/$2.sh" <"${3:-/dev/null}"
    fi
}

start_server() { # start_server FILE: returns once it listens
    if [ "$server" = native ]; then
        (native server "$folder/server.sh") >"$1.server" 2>&1 </dev/null &
        pid=$!
        # shellcheck disable=SC2086 # several ports
        sh listening.sh $ports
    else
        up=yes
        compose up -d --no-deps server >"$1.compose" 2>&1 || {
            cat "$1.compose" >&2
            return 1
        }
        rm "$1.compose"
        container=$(docker ps -q --filter "label=com.docker.compose.project=kit-$environment" \
            --filter label=com.docker.compose.service=server)
        # shellcheck disable=SC2086
        docker exec "$container" sh /kit/listening.sh $ports </dev/null
    fi
}

stop_server() { # stop_server FILE: what it printed is in FILE.server
    if [ "$server" = native ]; then
        [ -n "$pid" ] || return 0
        kill -s "$signal" "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
        pid=
    else
        [ -n "$container" ] || return 0
        docker kill -s "$signal" "$container" >/dev/null 2>&1 || true
        timeout 10 docker wait "$container" >/dev/null 2>&1 || true
        docker logs "$container" >"$1.server" 2>&1 || true
        docker rm -f "$container" >/dev/null 2>&1
        container=
    fi
}

one_round() { # one_round FILE: a fresh server and a fresh client; what the measured program printed is in FILE.out
    keeper=solo
    case $roles in *server*) keeper=server ;; esac
    if [ -e "$folder/finish.sh" ]; then # once at the end, what came last first
        sum=$(cksum <"$folder/finish.sh" | tr ' ' -)
        case " $finishing" in
        *" $sum:"*) ;;
        *) finishing="$sum:$keeper:$cell $finishing" ;;
        esac
    fi
    if [ -e "$folder/prepare.sh" ]; then
        sum=$(cksum <"$folder/prepare.sh")
        case $prepared in
        *"[$sum]"*) ;;
        *)
            run_role "$keeper" prepare >"$1.prepare" 2>&1 || return 1
            prepared="${prepared}[$sum]"
            ;;
        esac
    fi
    if [ -e "$folder/restore.sh" ]; then
        run_role "$keeper" restore >"$1.restore" 2>&1 || return 1
    fi
    code=0
    case $roles in
    *server*)
        if start_server "$1"; then
            measure "$1" || code=1
        else
            code=1
        fi
        stop_server "$1"
        ;;
    *) measure "$1" || code=1 ;;
    esac
    return "$code"
}

measure() {
    measured=${roles##* }
    if [ -e "$folder/warm_up.sh" ]; then
        run_role "$measured" warm_up >"$1.warm_up" 2>&1 || return 1
    fi
    run_role "$measured" "$measured" >"$1.out" 2>"$1.err" || return 1
    [ -e "$folder/check.sh" ] || return 0
    run_role "$measured" check "$1.out" >"$1.check" 2>&1 || {
        mv "$1.out" "$1.refused" # so that it is in no summary
        return 1
    }
}

run_cell() { # run_cell FOLDER ROLES PORTS SIGNAL PAUSE: all rounds of a workload, then the pause after it
    cell=$1 roles=$2 ports=$3 signal=$4 after=$5
    folder=environments/$environment/$cell results=results/$environment/$cell round=0
    mkdir -p "$results"
    while [ "$round" -lt "$ROUNDS" ]; do
        [ "$round" = 0 ] || sleep "$PAUSE"
        round=$((round + 1))
        file=$results/$(printf %03d "$round")
        if one_round "$file"; then
            echo "$environment: $cell: round $round of $ROUNDS"
        else
            echo "$environment: $cell: round $round of $ROUNDS failed; see $file.*" >&2
            failed=$((failed + 1))
        fi
    done
    sleep "${LEVEL_PAUSE:-$after}"
}

finish() { # takes down what is up; also when interrupted
    code=$?
    trap - EXIT
    [ -z "$pid" ] || kill -s KILL "$pid" 2>/dev/null || true
    for each in $finishing; do
        keeper=${each#*:} cell=${each##*:}
        keeper=${keeper%%:*} folder=environments/$environment/$cell file=results/$environment/$cell/finish
        run_role "$keeper" finish >"$file" 2>&1 || echo "$environment: $cell: what it runs at the end failed; see $file" >&2
    done
    [ -z "$up" ] || compose down -v --remove-orphans >/dev/null 2>&1 || true
    [ "$failed" = 0 ] || {
        echo "$environment: rounds that failed: $failed" >&2
        exit 1
    }
    exit "$code"
}
