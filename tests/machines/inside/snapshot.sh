#!/bin/sh
# snapshot.sh: what a run must leave as it was, a section a line of its own with #
export LC_ALL=C
echo "# control groups"; find /sys/fs/cgroup -type d | grep -v -E 'user@|session-|\.service|ssh|user-.*slice' | sort
echo "# groups of users"; find /sys/fs/cgroup/user.slice -type d -name '*weighbridge*' -o -type d -name 'libpod-*' -o -type d -name 'docker-*' | sort
# runc gives every controller to the slices above a container, as in system.slice; in user.slice these are new, and limit nothing
echo "# subtree"; for f in /sys/fs/cgroup /sys/fs/cgroup/system.slice; do echo "$f $(cat $f/cgroup.subtree_control)"; done
echo "/sys/fs/cgroup/user.slice $(sed 's/ \(hugetlb\|rdma\|misc\|io\|cpuset\)\b//g' /sys/fs/cgroup/user.slice/cgroup.subtree_control)"
echo "# mounts"; awk '{print $5}' /proc/self/mountinfo | grep -v -E '^/run/user/[0-9]+$' | sort
echo "# nft"; nft list ruleset 2>/dev/null | sed 's/counter packets [0-9]* bytes [0-9]*/counter/'
echo "# iptables"
for program in iptables-save ip6tables-save iptables-legacy-save ip6tables-legacy-save; do
    $program 2>/dev/null | grep -v '^#' | sed 's/\[[0-9:]*\]//'
done
# Docker deletes the file of a container that has gone within a minute, so that those in use count alone: they are mounts
echo "# links"; ls /sys/class/net; ip netns; find /run/netns -mindepth 1 2>/dev/null
echo "# sysctl"
for name in net.ipv4.ip_forward net.ipv6.conf.all.forwarding net.bridge.bridge-nf-call-iptables vm.overcommit_memory \
    net.ipv4.conf.all.route_localnet; do
    echo "$name $(sysctl -n $name 2>/dev/null)"
done
echo "# docker"
if systemctl -q is-active docker; then
    docker ps -a --format '{{.Names}}'; docker network ls --format '{{.Name}} {{.Driver}}'
    docker images -a --format '{{.Repository}}:{{.Tag}} {{.ID}}'; docker volume ls -q
fi
echo "# files"; ls -A /tmp /var/tmp /run /var/lib /run/weighbridge* /run/lock /etc/docker 2>/dev/null | grep -v -E '^(systemd-private|utmp|user|sudo|xtables.lock)' # iptables itself makes the last
echo "# devices"; stat -c '%n %A %t %T' /dev/* | grep -v -E '/(char|block|pts|shm|mqueue|fd|tty[0-9]*|core|std.*) '
echo "# folders of users"
ls -A /dev/shm /run/user/*/weighbridge* /run/user/*/containers /run/user/*/libpod /home/*/.local/share/containers/storage/overlay-containers \
    /home/*/.local/share/containers/storage/volumes /home/*/.cache/weighbridge/engines /root/.cache/weighbridge/engines 2>/dev/null
echo "# failed"; systemctl --failed --no-legend --plain
echo "# processes"
ps -eo user,args --no-headers | grep -i -E 'weigh|docker|podman|lxc|nspawn|iperf|sysbench|pasta|slirp' |
    grep -v -E 'grep|snapshot.sh|podman system service|catatonit|ssh|dbus-daemon|\(sd-pam\)|systemd --user' | sort | uniq -c
