#!/bin/sh
# What libxl runs for each disk and interface of a domain, in place of Xen's own scripts: those start some fifty programs
# each, and an emulated host that is busy has not ended them when libxl gives up, after 40 s. A disk is a block device
# or a file, an interface becomes a port of its bridge. Its words are add, remove, online and offline.
set -e
trap '[ $? = 0 ] || xenstore-write "$XENBUS_PATH/hotplug-status" error' EXIT
case "$XENBUS_TYPE $1" in
"vbd add")
	set -- $(xenstore-read "$XENBUS_PATH/params" "$XENBUS_PATH/mode")
	disk=$1
	if [ -f "$disk" ]; then
		[ "$2" = w ] && only= || only=--read-only
		disk=$(losetup --find --show $only "$1")
	fi
	xenstore-write "$XENBUS_PATH/node" "$disk" "$XENBUS_PATH/physical-device-path" "$disk" \
		"$XENBUS_PATH/physical-device" "$(stat -L -c %t:%T "$disk")" "$XENBUS_PATH/hotplug-status" connected
	;;
"vbd remove")
	disk=$(xenstore-read "$XENBUS_PATH/node" 2> /dev/null) || exit 0
	case "$disk" in /dev/loop*) losetup --detach "$disk" ;; esac
	;;
"vif online")
	set -- $(xenstore-read "$XENBUS_PATH/vifname" "$XENBUS_PATH/bridge")
	ip link set dev "$vif" name "$1" address fe:ff:ff:ff:ff:ff mtu "$(cat "/sys/class/net/$2/mtu")"
	if [ -n "$WEIGHBRIDGE_OFFLOADS" ]; then # of our end, and as the domain's driver finds them when it comes up
		ethtool -K "$1" $WEIGHBRIDGE_OFFLOADS
		xenstore-write "$XENBUS_PATH/feature-gso-tcpv4" 0 "$XENBUS_PATH/feature-gso-tcpv6" 0
	fi
	ip link set dev "$1" master "$2" up
	xenstore-write "$XENBUS_PATH/hotplug-status" connected
	;;
esac
