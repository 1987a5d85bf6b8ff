#!/bin/sh
# Weighs a program or runs a study (or takes a run that is there), then `weighbridge gate` on it; ends with the gate's
# exit code, which is 9 where it is undecided because trials failed, and with 9 where it is undecided and the run ended
# so. Without a budget and an earlier run there is nothing to
# hold: it ends as the run did.
#
# Everything is told by variables, so that no value of a CI system's input becomes part of a command's text: each one
# is a word of its own in an argument list, and no shell reads it again. One of WB_COMMAND, WB_STUDY and WB_RUN is needed.
#
#   WB_COMMAND      a program with its arguments, parted by blanks, which is weighed first (of an image: WB_IMAGE alone will do)
#   WB_IN, WB_IMAGE, WB_WITHIN    what it is weighed in (default: docker; without it the job fails), the image that it is
#                   in, the time that it may take
#   WB_ENV          names of variables, parted by blanks, that the program or the study takes from the job's environment;
#                   no run stores their values
#   WB_STUDY        a study file or a bundled study, which is run first     WB_PROFILE    one of its profiles
#   WB_RUN          the run directory (default: weighbridge-run)
#   WB_BUDGETS      budgets, one a line                                     WB_EXTEND     such as 10min
#   WB_AGAINST      an earlier run                                          WB_MARGIN     such as 3%
#   WB_JUNIT, WB_MARKDOWN, WB_BMF    files to write                         WB_ANNOTATIONS   github or gitlab
#   WB_CODE_QUALITY the file for gitlab's annotations (default: gl-code-quality-report.json)
#   WEIGHBRIDGE     the program (default: weighbridge), or a command whose words are parted by blanks: python3 -m weighbridge.
#                   They are words as they stand: no quotes, no variables, no patterns. A program may have blanks in its name
set -eu

program=${WEIGHBRIDGE:-weighbridge}
case $program in *[![:space:]]*) ;; *) program=weighbridge ;; esac
command=${WB_COMMAND:-}
image=${WB_IMAGE:-}
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

if [ -z "$command$image$study$run" ]; then
    echo "gate.sh: name a program to weigh (WB_COMMAND), a study to run (WB_STUDY) or a run to judge (WB_RUN)" >&2
    exit 2
fi
if [ -n "$command$image" ] && [ -n "$study" ]; then
    echo "gate.sh: name a program to weigh (WB_COMMAND, WB_IMAGE) or a study to run (WB_STUDY), not both" >&2
    exit 2
fi
# an empty variable, of an artifact that is missing, is no reason to judge nothing
if [ -n "${WB_MARGIN:-}" ] && [ -z "${WB_AGAINST:-}" ]; then
    echo "gate.sh: WB_MARGIN needs the earlier run: name it (WB_AGAINST)" >&2
    exit 2
fi
if [ -n "${WB_AGAINST:-}" ] && [ -z "${WB_MARGIN:-}" ]; then
    echo "gate.sh: WB_AGAINST needs a margin, such as 3% (WB_MARGIN)" >&2
    exit 2
fi
if [ -n "${WB_EXTEND:-}" ] && [ -z "${WB_BUDGETS:-}${WB_AGAINST:-}" ]; then
    echo "gate.sh: WB_EXTEND needs a budget (WB_BUDGETS) or an earlier run (WB_AGAINST)" >&2
    exit 2
fi

measured=0  # how weighing or the study ended
if [ -n "$command$image$study" ]; then
    : "${run:=weighbridge-run}"
    if [ -e "$run/run.sqlite" ]; then  # it would be continued, and a finished one judged as if it were of today
        echo "gate.sh: $run holds a run already: remove it, or name another directory (WB_RUN)" >&2
        exit 2
    fi
    if [ -n "$study" ]; then
        set -- run --yes --out "$run"
        if [ -n "${WB_PROFILE:-}" ]; then set -- "$@" --profile "$WB_PROFILE"; fi
        for name in ${WB_ENV:-}; do set -- "$@" --env "$name"; done
        set -- "$@" -- "$study"
    else
        # insisted on: of its own accord weigh takes what there is, which the budgets were not set for
        set -- weigh --out "$run" --in "${WB_IN:-docker}"
        if [ -n "$image" ]; then set -- "$@" --image "$image"; fi
        if [ -n "${WB_WITHIN:-}" ]; then set -- "$@" --within "$WB_WITHIN"; fi
        for name in ${WB_ENV:-}; do set -- "$@" --env "$name"; done
        set -f # its words are no patterns of files
        # shellcheck disable=SC2086
        set -- "$@" -- $command
        set +f
    fi
    weigh "$@" || measured=$?
    # 9: some comparison has no complete block, of which the gate says that it is undecided
    case $measured in 0 | 9) ;; *) exit "$measured" ;; esac
fi

# the answer, before what the gate says of it; the gate says what is wrong with a run of which there is no report
if [ -n "${WB_MARKDOWN:-}" ] && report=$(export COLUMNS=100 NO_COLOR=1 && weigh report -- "$run"); then
    printf '```text\n%s\n```\n\n' "$report" >> "$WB_MARKDOWN"
fi
if [ -z "${WB_BUDGETS:-}${WB_AGAINST:-}" ] && [ -n "$command$image" ]; then exit "$measured"; fi

set -- gate --yes
while IFS= read -r budget; do
    case $budget in
        *[![:space:]]*) set -- "$@" --budget "$budget" ;;
    esac
done <<END_OF_BUDGETS
${WB_BUDGETS:-}
END_OF_BUDGETS
if [ -n "${WB_EXTEND:-}" ]; then set -- "$@" --extend "$WB_EXTEND"; fi
for name in ${WB_ENV:-}; do set -- "$@" --env "$name"; done
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

# "undecided" may be allowed to a job; a program that cannot be run may not
if [ "$measured:$code" = 9:12 ]; then
    echo "gate.sh: undecided because trials failed, which ends with 9: weighbridge report $run" >&2
    code=9
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
