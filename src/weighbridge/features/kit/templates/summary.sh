#!/bin/sh
# The mean of each workload's first metric over the rounds, its standard deviation and coefficient of variation.
# Only of programs that print JSON, which jq reads; the last line names the others. A round whose output has no such value is in none of the figures.
set -eu
cd "$(dirname "$0")"
command -v jq >/dev/null || {
    echo "jq is not installed: install it with your package manager" >&2
    exit 1
}
printf 'environment\tworkload\tmetric\trounds\tmean\tdeviation\tcv\n'
for program in environments/*/*/headline.jq; do
    [ -e "$program" ] || continue
    folder=${program#environments/} folder=${folder%/headline.jq}
    [ -d "results/$folder" ] || continue
    metric=$(sed -n '1s/^# //p' "$program")
    rounds=$(find "results/$folder" -type f | sed 's|.*/||; s|\..*||' | sort -u | wc -l)
    for output in "results/$folder"/*.out; do
        jq -r -f "$program" "$output" 2>/dev/null || true
    done | awk -v OFS='\t' -v of="${folder%%/*}" -v cell="${folder#*/}" -v metric="$metric" -v rounds="$rounds" '
        /^-?[0-9.]/ { value[++n] = $1; sum += $1 }
        END {
            mean = deviation = cv = "-"
            if (n) mean = sum / n
            if (n > 1) {
                for (i = 1; i <= n; i++) squares += (value[i] - mean) ^ 2
                deviation = sqrt(squares / (n - 1))
                if (mean) cv = 100 * deviation / mean " %"
            }
            print of, cell, metric, n + 0 " of " rounds + 0, mean, deviation, cv
        }'
done
others=$(for folder in environments/*/*/; do
    [ ! -d "$folder" ] || [ -e "${folder}headline.jq" ] || basename "$folder"
done | sort -u | paste -s -d , - | sed 's/,/, /g')
[ -z "$others" ] || echo "not summarised: $others: see results/ENVIRONMENT/WORKLOAD/*.out"
