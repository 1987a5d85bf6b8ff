#!/bin/sh
# Measures a program or runs a study (or takes an existing run), then runs `weighbridge gate` on the result.
#
# All settings are environment variables, because a shell would interpret values in the text of a command. Set one of
# WB_COMMAND, WB_IMAGE, WB_STUDY and WB_RUN.
#
#   variable          meaning                                                              default
#   WB_COMMAND        program to measure, with arguments separated by spaces               (the image's own command)
#   WB_IN             environments to measure it in, separated by commas                   docker; with WB_BASE: native
#   WB_IMAGE          image that contains the program
#   WB_COMMANDS       several programs to measure in the same rounds instead, one
#                     NAME=COMMAND per line
#   WB_BASE           version to compare the checked-out one with: a branch, tag or commit of the git repository
#   WB_HEAD           version to measure instead of the checked-out one (needs WB_BASE)
#   WB_BUILD          command that builds each version (needs WB_BASE)
#   WB_WITHIN         time limit for measuring the program, such as 5min
#   WB_STUDY          study file or bundled study to run
#   WB_PROFILE        profile of the study
#   WB_RUN            run directory: a new one, or the existing run to judge               weighbridge-run
#   WB_ENV            names of variables to pass to the program or study, separated by
#                     spaces; the run does not store their values
#   WB_BUDGETS        budgets, one per line, such as *.time<=10%
#   WB_BUDGET_FILE    file with one budget per line
#   WB_EXTEND         time for more rounds if the gate is undecided, such as 10min
#   WB_AGAINST        earlier run to compare with (needs WB_MARGIN)
#   WB_MARGIN         largest allowed increase over the earlier run, such as 3%
#   WB_JUNIT          file for a JUnit report
#   WB_MARKDOWN       file for the result as Markdown
#   WB_BMF            file for the costs in Bencher Metric Format
#   WB_ANNOTATIONS    github or gitlab
#   WB_STEP           comment: only post the existing run as a comment on the pull request
#   WB_COMMENT_NAME   name of the comment, if a pull request has several                   weighbridge
#   WB_PAGE           address of the report, for a link in the comment                     (the page of the CI job)
#   WB_CODE_QUALITY   file for GitLab's annotations                                        gl-code-quality-report.json
#   WEIGHBRIDGE       the program, or a command with arguments separated by spaces, such   weighbridge
#                     as python3 -m weighbridge; without quotes, variables or patterns
#
# The measurement is started without the token of GitHub or GitLab. On GitLab every process of the job can still read it
# from the processes that started this script. In the same job, the program and the build can change what the step
# "comment" starts: docs/howto/ci.md.
#
# The exit code is that of the gate: 0 passed, 11 failed, 12 undecided, 10 the control failed, 9 undecided because trials
# failed. Without a budget and without an earlier run there is nothing to judge: a measured program then ends with the
# exit code of the measurement.
set -eu

program=${WEIGHBRIDGE:-weighbridge}
case $program in *[![:space:]]*) ;; *) program=weighbridge ;; esac
command=${WB_COMMAND:-}
commands=${WB_COMMANDS:-}
base=${WB_BASE:-}
budgets=${WB_BUDGETS:-}${WB_BUDGET_FILE:-}
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

if [ "${WB_STEP:-}" = comment ]; then
    : "${run:=weighbridge-run}"
    if [ ! -e "$run/run.sqlite" ]; then
        echo "gate.sh: $run holds no run, so there is nothing to post" >&2
        exit 0
    fi
    unset GITHUB_STEP_SUMMARY  # the measurement wrote the same text to WB_MARKDOWN
    set -- comment
    if [ -n "${WB_COMMENT_NAME:-}" ]; then set -- "$@" --name "$WB_COMMENT_NAME"; fi
    if [ -n "${WB_PAGE:-}" ]; then set -- "$@" --page "$WB_PAGE"; fi
    if [ "${GITHUB_EVENT_NAME:-}" != workflow_run ]; then  # the run of another job can hold any file, and any link
        set -- "$@" --markdown "$run/comment.md"
        if [ -f "$run/gate.md" ]; then set -- "$@" --add "$run/gate.md"; fi
    fi
    weigh "$@" -- "$run"
    exit
fi
unset GITHUB_TOKEN GITLAB_TOKEN

if [ -z "$command$commands$image$study$run" ]; then
    echo "gate.sh: name a program to weigh (WB_COMMAND), a study to run (WB_STUDY) or a run to judge (WB_RUN)" >&2
    exit 2
fi
if [ -n "$command$commands$image" ] && [ -n "$study" ]; then
    echo "gate.sh: name a program to weigh (WB_COMMAND, WB_IMAGE) or a study to run (WB_STUDY), not both" >&2
    exit 2
fi
if [ -z "$base" ] && [ -n "${WB_HEAD:-}${WB_BUILD:-}" ]; then
    echo "gate.sh: WB_HEAD and WB_BUILD need the version to compare with: name it (WB_BASE)" >&2
    exit 2
fi
if [ -n "$base" ] && [ -n "$study$image" ]; then
    echo "gate.sh: WB_BASE compares versions of a program: remove WB_STUDY and WB_IMAGE" >&2
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
if [ -n "${WB_EXTEND:-}" ] && [ -z "$budgets${WB_AGAINST:-}" ]; then
    echo "gate.sh: WB_EXTEND needs a budget (WB_BUDGETS, WB_BUDGET_FILE) or an earlier run (WB_AGAINST)" >&2
    exit 2
fi

measured=0  # exit code of the measurement
if [ -n "$command$commands$image$study" ]; then
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
        set -- weigh --out "$run"
        if [ -n "$base" ]; then
            set -- "$@" --base "$base"
            if [ -n "${WB_HEAD:-}" ]; then set -- "$@" --head "$WB_HEAD"; fi
            if [ -n "${WB_BUILD:-}" ]; then set -- "$@" --build "$WB_BUILD"; fi
            if [ -n "${WB_EXTEND:-}" ]; then set -- "$@" --keep-trees; fi
            if [ -n "${WB_IN:-}" ]; then set -- "$@" --in "$WB_IN"; fi
            if [ -n "${WB_MARKDOWN:-}" ]; then set -- "$@" --markdown "$WB_MARKDOWN"; fi
        else
            set -- "$@" --in "${WB_IN:-docker}"
        fi
        while IFS= read -r each; do
            case $each in
                *[![:space:]]*) set -- "$@" --command "$each" ;;
            esac
        done <<END_OF_COMMANDS
$commands
END_OF_COMMANDS
        if [ -n "$image" ]; then set -- "$@" --image "$image"; fi
        if [ -n "${WB_WITHIN:-}" ]; then set -- "$@" --within "$WB_WITHIN"; fi
        for name in ${WB_ENV:-}; do set -- "$@" --env "$name"; done
        set -f # do not expand its words as file patterns
        # shellcheck disable=SC2086
        set -- "$@" -- $command
        set +f
    fi
    weigh "$@" || measured=$?
    rm -f -- "$run/gate.md" "$run/comment.md"  # the build or the program can have made them
    # 9: a comparison has no complete round; the gate reports it as undecided
    case $measured in 0 | 9) ;; *) exit "$measured" ;; esac
fi

# the report comes before the gate's table; if there is no report, the gate explains what is wrong with the run
if [ -z "$base" ] && [ -n "${WB_MARKDOWN:-}" ] && report=$(export COLUMNS=100 NO_COLOR=1 && weigh report -- "$run"); then
    # shellcheck disable=SC2016  # a fence of Markdown, not a command
    printf '```text\n%s\n```\n\n' "$report" >> "$WB_MARKDOWN"
fi
if [ -z "$budgets${WB_AGAINST:-}" ] && [ -n "$command$commands$image" ]; then exit "$measured"; fi

set -- gate --yes
while IFS= read -r budget; do
    case $budget in
        *[![:space:]]*) set -- "$@" --budget "$budget" ;;
    esac
done <<END_OF_BUDGETS
${WB_BUDGETS:-}
END_OF_BUDGETS
if [ -n "${WB_BUDGET_FILE:-}" ]; then set -- "$@" --budget-file "$WB_BUDGET_FILE"; fi
if [ -n "${WB_EXTEND:-}" ]; then set -- "$@" --extend "$WB_EXTEND"; fi
for name in ${WB_ENV:-}; do set -- "$@" --env "$name"; done
if [ -n "${WB_AGAINST:-}" ]; then set -- "$@" --against "$WB_AGAINST"; fi
if [ -n "${WB_MARGIN:-}" ]; then set -- "$@" --margin "$WB_MARGIN"; fi
if [ -n "${WB_JUNIT:-}" ]; then set -- "$@" --junit "$WB_JUNIT"; fi
summary=${WB_MARKDOWN:-}
if [ -n "$base" ]; then summary=$run/gate.md; fi  # the step "comment" adds it to the comment
if [ -n "$summary" ]; then set -- "$@" --markdown "$summary"; fi
if [ -n "${WB_BMF:-}" ]; then set -- "$@" --bmf "$WB_BMF"; fi
if [ -n "${WB_ANNOTATIONS:-}" ]; then set -- "$@" --annotations "$WB_ANNOTATIONS"; fi

code=0
if [ "${WB_ANNOTATIONS:-}" = gitlab ]; then
    printf '[]\n' > "${WB_CODE_QUALITY:-gl-code-quality-report.json}"
    weigh "$@" -- "$run" > "${WB_CODE_QUALITY:-gl-code-quality-report.json}" || code=$?
else
    weigh "$@" -- "$run" || code=$?
fi

if [ -n "$base" ] && [ -n "${WB_MARKDOWN:-}" ] && [ -e "$summary" ]; then cat "$summary" >> "$WB_MARKDOWN"; fi
if [ -n "$base" ] && [ -n "${WB_EXTEND:-}" ]; then weigh clean > /dev/null || true; fi  # the kept trees

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
