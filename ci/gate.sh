#!/bin/sh
# Runs a study (or takes a run that is there), then `weighbridge gate` on it; ends with the gate's exit code.
#
# Everything is told by variables, so that no value of a CI system's input becomes part of a command's text: each one
# is a word of its own in an argument list, and no shell reads it again. All but one of WB_STUDY and WB_RUN may be empty.
#
#   WB_STUDY        a study file or a bundled study, which is run first     WB_PROFILE    one of its profiles
#   WB_RUN          the run directory (default with WB_STUDY: weighbridge-run)
#   WB_BUDGETS      budgets, one a line                                     WB_EXTEND     such as 10min
#   WB_AGAINST      an earlier run                                          WB_MARGIN     such as 3%
#   WB_JUNIT, WB_MARKDOWN, WB_BMF    files to write                         WB_ANNOTATIONS   github or gitlab
#   WB_CODE_QUALITY the file for gitlab's annotations (default: gl-code-quality-report.json)
#   WEIGHBRIDGE     the program (default: weighbridge), or a command whose words are parted by blanks: python3 -m weighbridge.
#                   They are words as they stand: no quotes, no variables, no patterns. A program may have blanks in its name
set -eu

program=${WEIGHBRIDGE:-weighbridge}
case $program in *[![:space:]]*) ;; *) program=weighbridge ;; esac
study=${WB_STUDY:-}
run=${WB_RUN:-}

weigh() {  # runs the program with these arguments
    if ! command -v -- "$program" > /dev/null 2>&1; then
        set -f  # its words are no patterns of files
        # shellcheck disable=SC2086
        set -- $program "$@"
        set +f
        "$@"
        return
    fi
    "$program" "$@"
}

if [ -z "$study" ] && [ -z "$run" ]; then
    echo "gate.sh: name a study to run (WB_STUDY) or a run to judge (WB_RUN)" >&2
    exit 2
fi

if [ -n "$study" ]; then
    : "${run:=weighbridge-run}"
    if [ -e "$run/run.sqlite" ]; then  # it would be continued, and a finished one judged as if it were of today
        echo "gate.sh: $run holds a run already: remove it, or name another directory (WB_RUN)" >&2
        exit 2
    fi
    set -- run --yes --out "$run"
    if [ -n "${WB_PROFILE:-}" ]; then set -- "$@" --profile "$WB_PROFILE"; fi
    code=0
    weigh "$@" -- "$study" || code=$?
    # 9: some comparison has no complete block, of which the gate says that it is undecided
    case $code in 0 | 9) ;; *) exit "$code" ;; esac
fi

set -- gate --yes
while IFS= read -r budget; do
    case $budget in
        *[![:space:]]*) set -- "$@" --budget "$budget" ;;
    esac
done <<END_OF_BUDGETS
${WB_BUDGETS:-}
END_OF_BUDGETS
if [ -n "${WB_EXTEND:-}" ]; then set -- "$@" --extend "$WB_EXTEND"; fi
if [ -n "${WB_AGAINST:-}" ]; then set -- "$@" --against "$WB_AGAINST"; fi
if [ -n "${WB_MARGIN:-}" ]; then set -- "$@" --margin "$WB_MARGIN"; fi
if [ -n "${WB_JUNIT:-}" ]; then set -- "$@" --junit "$WB_JUNIT"; fi
if [ -n "${WB_MARKDOWN:-}" ]; then set -- "$@" --markdown "$WB_MARKDOWN"; fi
if [ -n "${WB_BMF:-}" ]; then set -- "$@" --bmf "$WB_BMF"; fi
if [ -n "${WB_ANNOTATIONS:-}" ]; then set -- "$@" --annotations "$WB_ANNOTATIONS"; fi

code=0
if [ "${WB_ANNOTATIONS:-}" = gitlab ]; then
    printf '[]\n' > "${WB_CODE_QUALITY:-gl-code-quality-report.json}"
    weigh "$@" -- "$run" > "${WB_CODE_QUALITY:-gl-code-quality-report.json}" || code=$?
else
    weigh "$@" -- "$run" || code=$?
fi

case $code in
    0) answer=passed ;;
    10) answer=untrusted ;;
    11) answer=failed ;;
    12) answer=undecided ;;
    *) answer=error ;;
esac
if [ -n "${GITHUB_OUTPUT:-}" ]; then printf 'answer=%s\n' "$answer" >> "$GITHUB_OUTPUT"; fi
exit "$code"
