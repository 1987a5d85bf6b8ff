#!/bin/sh
# own_machine.sh PROGRAM ARGUMENTS...: run a program on what looks like a machine of its own, as root. It has its own
# processes, network, packet filter, mounts and control groups, and what it changes in /etc, /opt, /run, /tmp,
# /var/lib and /dev/shm stays its own: real tests that compare the machine before and after then run beside one another.
set -eu
if [ "${1:-}" != --inside ]; then
    # in version 2 only the topmost group of a hierarchy may hold processes beside groups with controllers
    grep -q '^[^ ]* /sys/fs/cgroup/[^ ]* cgroup ' /proc/self/mounts || { echo "needs control groups of version 1" >&2; exit 1; }
    private=$(mktemp -d /var/tmp/own-machine.XXXXXX)
    group=weighbridge-tests/${private##*.}
    groups=$(find /sys/fs/cgroup -maxdepth 2 -name cgroup.procs -printf '%h\n')
    clean_up() {
        for top in $groups; do
            find "$top/$group" -depth -type d -exec rmdir {} + 2>/dev/null || :
            rmdir "$top/weighbridge-tests" 2>/dev/null || :
        done
        rm -rf --one-file-system "$private"
    }
    trap clean_up EXIT
    trap 'exit 143' HUP INT TERM
    for top in $groups; do
        mkdir -p "$top/$group"
        for file in cpuset.cpus cpuset.mems; do # a group of version 1 begins without any
            [ -e "$top/$file" ] || continue
            for inner in "$top/weighbridge-tests" "$top/$group"; do cat "$top/$file" > "$inner/$file"; done
        done
    done
    # the first process of a process namespace takes in every orphan: a shell that waits for its program does
    code=0
    GROUPS_OF_IT=$groups sh -c '
        for top in $GROUPS_OF_IT; do echo $$ > "$top/$0/cgroup.procs"; done; unset GROUPS_OF_IT
        exec unshare --mount --net --pid --ipc --uts --cgroup --fork --kill-child "$@"
    ' "$group" "$0" --inside "$private" "$@" || code=$?
    exit "$code"
fi
private=$2; shift 2
cgroup_mounts=$(grep -E '^[^ ]+ /sys/fs/cgroup[ /]' /proc/self/mounts | grep ' cgroup')
mount -t proc proc /proc
for folder in /etc /opt /var/lib; do
    mkdir -p "$private/upper$folder" "$private/work$folder"
    # engines of other tests make and remove these folders of the real machine, which an overlay would show
    for name in docker containerd; do mknod "$private/upper$folder/$name" c 0 0; done # hides the name (a whiteout)
    mount -t overlay -o "lowerdir=$folder,upperdir=$private/upper$folder,workdir=$private/work$folder" own "$folder"
done
mkdir -p "$private/tmp"
case $PWD in /tmp/*) mkdir -p "$private$PWD" && mount --bind "$PWD" "$private$PWD" ;; esac # this checkout stays
chmod 1777 "$private/tmp"
mount --rbind "$private/tmp" /tmp
mount -t tmpfs -o mode=755 own /run
mount -t tmpfs -o "$(awk '$2 == "/dev/shm" && $3 == "tmpfs" { as = $4 } END { print as ? as : "mode=1777" }' /proc/self/mounts)" own /dev/shm
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755 own /sys/fs/cgroup
echo "$cgroup_mounts" | while read -r _ at kind options _; do
    [ "$at" = /sys/fs/cgroup ] || mkdir "$at"
    case $kind,$options in
        cgroup2,*) mount -t cgroup2 cgroup2 "$at" ;;
        *,*name=*) mount -t cgroup -o "none,name=${options##*name=}" cgroup "$at" ;;
        *) mount -t cgroup -o "${options##*relatime,}" cgroup "$at" ;;
    esac
done
cd "$PWD" # where it is in what is mounted now
ip link set lo up
"$@"
exit $?
