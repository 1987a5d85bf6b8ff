#!/bin/sh
# Installs what Weighbridge needs: the missing Debian packages (it says which), and .venv with the tool in it.
# Run by `make`; usage: scripts/setup.sh [EXTRA], where EXTRA is "dev" for the tests' tools.
set -eu
cd "$(dirname "$0")/.."
extra=${1:-}
venv=.venv
PATH=$PATH:/usr/sbin:/sbin # root's programs, also where a user runs this
stamp=$venv/installed${extra:+-$extra}

need() { # need COMMAND PACKAGE: remember PACKAGE where COMMAND is missing
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

missing=
PATH=$PATH:/usr/lib/podman # netavark
need dockerd docker.io
need mmdebstrap mmdebstrap
need iptables iptables
need ip iproute2
need nsenter util-linux
need ethtool ethtool
need mvn maven
need javac default-jdk-headless
need go golang-go
need tini tini
need cc gcc
[ -e /usr/include/stdlib.h ] || missing="$missing libc6-dev"
need ssh openssh-client
python=${PYTHON:-python3}
need "$python" python3
"$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$missing python3-venv"
if [ "$extra" = dev ]; then
    need mkfs.ext4 e2fsprogs
    need mkfs.xfs xfsprogs
    need mkfs.btrfs btrfs-progs
    need losetup mount
    need qemu-system-x86_64 qemu-system-x86
    need qemu-aarch64-static qemu-user-static
    need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    [ -e /usr/aarch64-linux-gnu/include/stdlib.h ] || missing="$missing libc6-dev-arm64-cross"
    need depmod kmod
    need sshd openssh-server
    need sudo sudo
    need podman podman
    need netavark netavark
    need runc runc
    need slirp4netns slirp4netns
    need pasta passt
    need newuidmap uidmap
    need sar sysstat
    need docker-compose docker-compose
    need jq jq
    need chromium chromium
    need prometheus-node-exporter prometheus-node-exporter
    need prometheus prometheus
    need lxc-start lxc
    need systemd-nspawn systemd-container
    need nbdkit nbdkit
    need xorriso xorriso
    [ -e /usr/lib/ISOLINUX/isolinux.bin ] || missing="$missing isolinux"
    [ -e /usr/lib/syslinux/modules/bios/ldlinux.c32 ] || missing="$missing syslinux-common"
    need prometheus-process-exporter prometheus-process-exporter
fi
if [ -n "$missing" ]; then
    echo "setup: installing the Debian packages:$missing"
    if [ "$(id -u)" != 0 ]; then
        echo "setup: this needs root: apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

if [ ! -e "$stamp" ] || [ pyproject.toml -nt "$stamp" ] || [ constraints.txt -nt "$stamp" ]; then
    echo "setup: installing Weighbridge into $venv"
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check -c constraints.txt -e ".${extra:+[$extra]}"
    touch "$stamp"
fi
