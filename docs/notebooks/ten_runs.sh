#!/bin/sh
# Make the ten runs of the notebook ten-runs: docs/notebooks/ten_runs.sh (from the root of a checkout, about 5 minutes)
#
# The new version does the work of the old one in runs 1 to 5, and 30% more in runs 6 to 10.
set -eu
checkout=$PWD
folder=$(mktemp -d)
cd "$folder"

version() { # NAME BYTES
	printf '#!/bin/sh\nexec dd if=/dev/zero of=/dev/null bs=1 count=%s status=none\n' "$2" > "$1"
	chmod +x "$1"
}

version before 300000
for number in 01 02 03 04 05 06 07 08 09 10; do
	case $number in 0[1-5]) version after 300000 ;; *) version after 390000 ;; esac
	"${WEIGHBRIDGE:-weighbridge}" weigh --rounds 20 --cpu-idle halt --out "$number" --against ./before -- ./after
	"${PYTHON:-python3}" "$checkout/docs/keep_run.py" "$number" "$number" "$checkout/docs/notebooks/ten-runs"
done
rm -r "$folder"
