"""Access to the kernel of a machine: processes, control groups, network links, mounts and files in /proc and /sys."""
