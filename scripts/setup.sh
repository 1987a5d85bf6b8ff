#!/bin/sh
# Installs what Weighbridge needs: the missing packages of the system (it says which), and .venv with the tool in it.
# Run by `make`; usage: scripts/setup.sh [EXTRA [kubernetes]], where EXTRA is "dev" for the tests' tools, and
# "kubernetes" is for what a cluster of the tests takes beside `make kubernetes`.
# PYTHON names another interpreter than python3; SETUP_ROOT another root folder than /, for the tests of this script.
set -eu
cd "$(dirname "$0")/.."
extra=${1:-}
cluster=${2:-}
root=${SETUP_ROOT:-}
python=${PYTHON:-python3}
table=src/weighbridge/linux/packages.txt # which package of a distribution has a program
venv=.venv
PATH=$PATH:$root/usr/sbin:$root/sbin # root's programs, also where a user runs this
PATH=$PATH:$root/usr/lib/podman:$root/usr/libexec/podman # netavark
stamp=$venv/installed${extra:+-$extra}

say() {
    echo "setup: $*"
}

fail() {
    say "$@" >&2
    exit 1
}

there() { # there PROGRAM...: whether one of them is
    for program; do
        if command -v "$program" >/dev/null 2>&1; then return 0; fi
    done
    return 1
}

new_enough() {
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "Weighbridge needs Python 3.11 or newer, and $python is $("$python" --version 2>&1): name another, as in PYTHON=python3.13 scripts/setup.sh"
}

row() { # row NAME: the cells of a line of the table
    while read -r name cells; do
        if [ "$name" = "$1" ]; then
            echo "$cells"
            return
        fi
    done <"$table"
}

cell() { # cell NAME: that of this distribution
    # shellcheck disable=SC2046
    set -- $(row "$1")
    shift $((column - 1))
    echo "$1"
}

words() { # words A,B: A B
    IFS=,
    # shellcheck disable=SC2086
    set -- $1
    unset IFS
    echo "$*"
}

lacks() { # lacks NAME: note what brings it
    names="$names $1"
    [ "$column" != 0 ] || return 0
    package=$(cell "$1")
    case $package in
    "" | -) none="$none $1" ;;
    *@*) none="$none $1 (${package#*@})" ;;
    *)
        for each in $(words "$package"); do
            case "$packages " in *" $each "*) ;; *) packages="$packages $each" ;; esac
        done
        ;;
    esac
}

need() { # need PROGRAM
    there "$1" || lacks "$1"
}

need_file() { # need_file NAME PATH...: one of these, below the root folder
    wanted=$1
    shift
    for path; do
        [ ! -e "$path" ] || return 0
    done
    lacks "$wanted"
}

ID='' ID_LIKE=''
for file in "$root/etc/os-release" "$root/usr/lib/os-release"; do
    if [ -e "$file" ]; then
        # shellcheck disable=SC1090
        . "$file"
        break
    fi
done
column=0 distribution=
for name in $ID $ID_LIKE; do
    number=0
    for known in $(row distribution); do
        number=$((number + 1))
        if [ "$name" = "$known" ]; then
            column=$number distribution=$known
            break 2
        fi
    done
done

names='' packages='' none=''
[ -z "${PYTHON:-}" ] || there "$python" || fail "there is no $python: correct PYTHON, or leave it out"
if there "$python"; then
    new_enough
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || lacks ensurepip
else
    lacks python3
    lacks ensurepip
fi
for program in dockerd mmdebstrap iptables ip nsenter ethtool mvn javac go cc ssh; do
    need "$program"
done
there tini docker-init || lacks tini
need_file libc.a "$root"/usr/lib64/libc.a "$root"/usr/lib/libc.a "$root"/usr/lib/*/libc.a
need_file debian-archive-keyring.gpg "$root"/usr/share/keyrings/debian-archive-keyring.*
if [ "$extra" = dev ]; then
    for program in mkfs.ext4 mkfs.xfs mkfs.btrfs losetup depmod sshd sudo podman netavark runc crun slirp4netns \
        pasta newuidmap sar docker-compose jq chromium prometheus-node-exporter prometheus lxc-start systemd-nspawn bwrap firejail \
        proot rg socat nbdkit \
        xorriso prometheus-process-exporter zsh fish groff redis-server; do
        need "$program"
    done
    need "qemu-system-$(uname -m)" # guests have the architecture of their machine
    [ "$(uname -m)" != x86_64 ] || need linux.uml
    need aarch64-linux-gnu-gcc
    need musl-gcc
    need qemu-aarch64-static
    need_file aarch64-libc.a "$root/usr/aarch64-linux-gnu/lib/libc.a"
    loader="/usr/lib/ISOLINUX /usr/lib/syslinux/modules/bios /usr/lib/syslinux/bios /usr/share/syslinux"
    for name in isolinux.bin ldlinux.c32; do
        set --
        for folder in $loader; do set -- "$@" "$root$folder/$name"; done
        need_file "$name" "$@"
    done
fi
if [ "$cluster" = kubernetes ]; then
    for program in etcd containerd ctr runc conntrack nft ipset openssl; do
        need "$program"
    done
    need_file host-local "$root"/usr/lib/cni/host-local "$root"/usr/libexec/cni/host-local "$root"/opt/cni/bin/host-local
fi

if [ -n "$names" ] && [ "$column" = 0 ]; then
    fail "how this system (${ID:-without os-release}) installs packages is not known: install these programs and files by hand, and call again:$names"
fi
[ -z "$none" ] || say "this distribution has no package of these: install them by hand, or do without:$none"
if [ -n "$packages" ]; then
    [ "$distribution" = debian ] || say "the names of $distribution's packages were not tried: mend a wrong one in $table"
    [ "$(id -u)" = 0 ] || fail "packages are missing, which root can install: $(words "$(cell install)")$packages"
    say "installing the packages:$packages"
    # shellcheck disable=SC2086
    case $distribution in
    debian)
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends $packages >/dev/null
        ;;
    fedora) dnf install -y -q $packages ;;
    arch) pacman -S --noconfirm --needed $packages ;;
    suse) zypper --non-interactive install $packages ;;
    alpine) apk add $packages ;;
    esac
fi
there "$python" || fail "there is no $python: name one by PYTHON=..."
new_enough

# shellcheck disable=SC3013  # dash, bash and busybox know -nt, and POSIX.1-2024 has it
if [ ! -e "$stamp" ] || [ pyproject.toml -nt "$stamp" ] || [ constraints.txt -nt "$stamp" ]; then
    say "installing Weighbridge into $venv"
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check -c constraints.txt -e ".${extra:+[$extra]}"
    touch "$stamp"
fi
