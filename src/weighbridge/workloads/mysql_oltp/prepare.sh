# Makes the data that every trial starts from: a data folder with sysbench's tables, on which a server was stopped
# cleanly. Read from standard input by sh, since it is run before there is any file of ours in the site.
# Arguments: the server's program, the folder, tables, rows of each, then the addresses that clients come from.
set -eu
program=$1 template=$2 tables=$3 rows=$4
shift 4
log=/tmp/weighbridge-mysql.log socket=/tmp/weighbridge-mysql.sock sql=/tmp/weighbridge-mysql.sql
work=$template.new server=

fail() { # the first error that was told becomes the last line
  if [ -n "$server" ]; then
    kill -KILL "$server" 2>/dev/null || true
    wait "$server" || true
  fi
  rm -rf "$work"
  if grep -q -E 'No space left|\b(error|errno:|Errcode:) 28\b' "$log"; then
    echo "No space left on the disk of $template" >&2
  else
    grep -h -m 1 -E 'ERROR|FATAL|cannot ' "$log" >&2 || tail -n 1 "$log" >&2
  fi
  exit 1
}
trap fail EXIT
: >"$log"

# where the folder has outlived the site, another version's data are no start for this one
"$program" --version >"/tmp/weighbridge-mysql.version"
if [ -d "$template" ] && cmp -s "$template/weighbridge.version" /tmp/weighbridge-mysql.version; then
  trap - EXIT
  exit 0
fi
rm -rf "$work" "$template" 2>>"$log"
mkdir "$work" 2>>"$log"
case $program in
mariadbd)
  more=
  mariadb-install-db --no-defaults --datadir="$work" --skip-test-db --skip-name-resolve --force >>"$log" 2>&1
  ;;
*)
  # no second protocol, no keys on the disk
  more='--secure-file-priv=NULL --loose-mysqlx=OFF --auto-generate-certs=OFF'
  more="$more --loose-caching-sha2-password-auto-generate-rsa-keys=OFF"
  # shellcheck disable=SC2086 # each is an option
  "$program" --no-defaults --user=root --datadir="$work" $more --initialize-insecure >>"$log" 2>&1
  rm -f "$work"/*_key.pem
  ;;
esac

# accounts without passwords, which may do nothing beyond the tables; the server's own may not be used at all
{
  echo "CREATE DATABASE sbtest;"
  for host in localhost "$@"; do
    echo "CREATE USER 'sbtest'@'$host';"
    echo "GRANT ALL ON sbtest.* TO 'sbtest'@'$host';"
  done
  echo "ALTER USER 'root'@'localhost' ACCOUNT LOCK;"
} >"$sql"
# shellcheck disable=SC2086 # each is an option
"$program" --no-defaults --user=root --datadir="$work" --socket="$socket" --pid-file=/tmp/weighbridge-mysql.pid \
  --skip-networking --skip-log-bin --init-file="$sql" --innodb-flush-log-at-trx-commit=0 --innodb-fast-shutdown=0 \
  --innodb-buffer-pool-dump-at-shutdown=OFF $more >>"$log" 2>&1 &
server=$!
until grep -q 'ready for connections' "$log"; do
  kill -0 "$server" 2>/dev/null
  sleep 0.05
done
# the rows are random, and other ones in each site: a seed does not change that
sysbench oltp_read_write --db-driver=mysql --mysql-socket="$socket" --mysql-user=sbtest --mysql-db=sbtest \
  --tables="$tables" --table-size="$rows" --threads=2 prepare >>"$log" 2>&1
kill -TERM "$server"
wait "$server"
server=
cp /tmp/weighbridge-mysql.version "$work/weighbridge.version" 2>>"$log"
sync --file-system "$work" 2>>"$log"
mv "$work" "$template" 2>>"$log"
trap - EXIT
