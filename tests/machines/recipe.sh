#!/bin/sh
# recipe.sh ROOT PUBLIC_KEY: make a bootable machine with four ordinary users of a tree that mmdebstrap has filled
set -eu
root=$1 key=$2
echo machine > "$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 machine\n' > "$root/etc/hosts"
echo '/dev/vda / ext4 defaults,noatime 0 1' > "$root/etc/fstab"
mkdir -p "$root/etc/systemd/network" "$root/carried"
printf '[Match]\nName=en* eth*\n[Network]\nDHCP=yes\n' > "$root/etc/systemd/network/lan.network"
rm -f "$root/etc/resolv.conf"
echo 'nameserver 10.0.2.3' > "$root/etc/resolv.conf"
chroot "$root" systemctl enable -q systemd-networkd ssh
chroot "$root" systemctl disable -q apt-daily.timer apt-daily-upgrade.timer man-db.timer e2scrub_all.timer fstrim.timer \
    lxc-net lxc 2>/dev/null || true
# The groups say what each may do: dockeruser reaches Docker, sudouser becomes root, the other two may do nothing;
# podmanuser stays logged in, as on a server where rootless containers run.
for user in dockeruser sudouser plainuser podmanuser; do
    chroot "$root" useradd -m -s /bin/bash $user
done
chroot "$root" usermod -aG docker dockeruser
sed -i /^plainuser:/d "$root/etc/subuid" "$root/etc/subgid" # without these numbers rootless containers are refused
chroot "$root" usermod -aG sudo sudouser
echo 'sudouser ALL=(ALL) NOPASSWD: ALL' > "$root/etc/sudoers.d/sudouser"
mkdir -p "$root/var/lib/systemd/linger"
touch "$root/var/lib/systemd/linger/podmanuser"
for home in root home/dockeruser home/sudouser home/plainuser home/podmanuser; do
    mkdir -p -m 700 "$root/$home/.ssh"
    cp "$key" "$root/$home/.ssh/authorized_keys"
    [ $home = root ] || chroot "$root" chown -R "${home#home/}:${home#home/}" "/$home/.ssh"
done
