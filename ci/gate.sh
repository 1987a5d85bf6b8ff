#!/bin/sh
# Measures a program or runs a study (or takes an existing run), then runs `weighbridge gate` on the result.
#
# All settings are environment variables, because a shell would interpret values in the text of a command. Set one of
# WB_COMMAND, WB_IMAGE, WB_STUDY and WB_RUN.
#
#   variable          meaning                                                              default
#   WB_COMMAND        program to measure, with arguments separated by spaces               (the image's own command)
#   WB_IN             environments to measure it in, separated by commas                   docker
#   WB_IMAGE          image that contains the program
#   WB_WITHIN         time limit for measuring the program, such as 5min
#   WB_STUDY          study file or bundled study to run
#   WB_PROFILE        profile of the study
#   WB_RUN            run directory: a new one, or the existing run to judge               weighbridge-run
#   WB_ENV            names of variables to pass to the program or study, separated by
#                     spaces; the run does not store their values
#   WB_BUDGETS        budgets, one per line, such as *.time<=10%
#   WB_EXTEND         time for more rounds if the gate is undecided, such as 10min
#   WB_AGAINST        earlier run to compare with (needs WB_MARGIN)
#   WB_MARGIN         largest allowed increase over the earlier run, such as 3%
#   WB_JUNIT          file for a JUnit report
#   WB_MARKDOWN       file for the result as Markdown
#   WB_BMF            file for the costs in Bencher Metric Format
#   WB_ANNOTATIONS    github or gitlab
#   WB_CODE_QUALITY   file for GitLab's annotations                                        gl-code-quality-report.json
#   WEIGHBRIDGE       the program, or a command with arguments separated by spaces, such   weighbridge
#                     as python3 -m weighbridge; without quotes, variables or patterns
#
# The exit code is that of the gate: 0 passed, 11 failed, 12 undecided, 10 the control failed, 9 undecided because trials
# failed. Without a budget and without an earlier run there is nothing to judge: a measured program then ends with the
# exit code of the measurement.
set -eu

program=${WEIGHBRIDGE:-weighbridge}
case $program in *[![:space:]]*) ;; *) program=weighbridge ;; esac
command=${WB_COMMAND:-}
image=${WB_IMAGE:-}
study=${WB_STUDY:-}
run=${WB_RUN:-}

weigh() {  # run Weighbridge with these arguments
    if ! command -v -- "$program" > /dev/null 2>&1; then
        set -f  # do not expand its words as file patterns
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
# a variable can be empty because an artifact is missing: that must not pass as "nothing to judge"
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

measured=0  # exit code of the measurement
if [ -n "$command$image$study" ]; then
    : "${run:=weighbridge-run}"
    if [ -e "$run/run.sqlite" ]; then  # an old run would be continued, or judged as if it were new
        echo "gate.sh: $run holds a run already: remove it, or name another directory (WB_RUN)" >&2
        exit 2
    fi
    if [ -n "$study" ]; then
        set -- run --yes --out "$run"
        if [ -n "${WB_PROFILE:-}" ]; then set -- "$@" --profile "$WB_PROFILE"; fi
        for name in ${WB_ENV:-}; do set -- "$@" --env "$name"; done
        set -- "$@" -- "$study"
    else
        # always named: by default, weigh uses the environments that it finds, and the budgets were not set for those
        set -- weigh --out "$run" --in "${WB_IN:-docker}"
        if [ -n "$image" ]; then set -- "$@" --image "$image"; fi
        if [ -n "${WB_WITHIN:-}" ]; then set -- "$@" --within "$WB_WITHIN"; fi
        for name in ${WB_ENV:-}; do set -- "$@" --env "$name"; done
        set -f # do not expand its words as file patterns
        # shellcheck disable=SC2086
        set -- "$@" -- $command
        set +f
    fi
    weigh "$@" || measured=$?
    # 9: a comparison has no complete round; the gate reports it as undecided
    case $measured in 0 | 9) ;; *) exit "$measured" ;; esac
fi

# the report comes before the gate's table; if there is no report, the gate explains what is wrong with the run
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

# a job may allow "undecided", but not a program that cannot run
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
