#!/bin/sh
# The mean of each workload's first metric over the rounds, its standard deviation and coefficient of variation.
# Only of programs that print JSON; jq reads it. Rounds whose output has no such value are counted as lost.
set -eu
cd "$(dirname "$0")"
command -v jq >/dev/null || {
    echo "jq is not installed: apt-get install jq" >&2
    exit 1
}
printf 'environment\tworkload\tmetric\trounds\tmean\tdeviation\tcv\tlost\n'
for program in environments/*/*/headline.jq; do
    [ -e "$program" ] || continue
    folder=${program#environments/} folder=${folder%/headline.jq}
    [ -d "results/$folder" ] || continue
    metric=$(sed -n '1s/^# //p' "$program")
    for output in "results/$folder"/*.out; do
        jq -r -f "$program" "$output" 2>/dev/null || echo null
    done | awk -v OFS='\t' -v of="${folder%%/*}" -v cell="${folder#*/}" -v metric="$metric" '
        !/^-?[0-9.]/ { lost++; next }
        { value[++n] = $1; sum += $1 }
        END {
            mean = n ? sum / n : 0
            for (i = 1; i <= n; i++) squares += (value[i] - mean) ^ 2
            deviation = n > 1 ? sqrt(squares / (n - 1)) : 0
            print of, cell, metric, n + 0, mean, deviation, (mean ? 100 * deviation / mean : 0) " %", lost + 0
        }'
done
