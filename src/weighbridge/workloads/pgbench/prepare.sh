# Makes the data that every trial starts from, by a server that listens nowhere.
# sh -s -- TEMPLATE SCALE; the variable "verifier", where it is set above, is what is kept of the clients' password
set -eu
template=$1 scale=$2
PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
[ "$(id -u)" = 0 ] || { echo "root makes PostgreSQL's data, and here programs are user $(id -u)" >&2; exit 1; }
as() {
    setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"
}
give_password() { # of this run; the data may be of another one
    [ -n "${verifier:-}" ] || return 0
    echo "ALTER USER postgres PASSWORD '$verifier'" |
        as postgres --single -D "$template" -c exit_on_error=on -c dynamic_shared_memory_type=sysv postgres >&2
    sync
}
if [ -e "$template/made" ] && [ "$(cat "$template/made")" = "$(postgres --version)" ]; then
    give_password
    exit
fi
rm -rf "$template" "$template.new"
run=/run/weighbridge-postgres-prepare
install -d -o postgres -g postgres -m 700 "$template.new" "$run"
as initdb --pgdata="$template.new" --auth=trust --username=postgres --encoding=UTF8 --locale=C.UTF-8 --no-sync >&2
as pg_ctl --pgdata="$template.new" --wait --timeout=120 --log="$run/log" start \
    --options="-c listen_addresses= -c unix_socket_directories=$run -c fsync=off -c dynamic_shared_memory_type=sysv" >&2 ||
    { cat "$run/log" >&2; exit 1; }
as pgbench --host="$run" --username=postgres --initialize --quiet --scale="$scale" postgres >&2 || failed=$?
as pg_ctl --pgdata="$template.new" --wait --mode=fast stop >&2
[ "${failed:-0}" = 0 ] || exit "$failed"
rm -rf "$run"
postgres --version >"$template.new/made"
sync
mv "$template.new" "$template"
give_password
