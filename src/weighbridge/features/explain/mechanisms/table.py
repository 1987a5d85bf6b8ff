"""Every mechanism of Weighbridge, one per entry, sorted by kind.

The comment of an entry says why the mechanism can have a cost.
"""

from weighbridge.features.explain.mechanisms import _switches as switches
from weighbridge.model import facts
from weighbridge.model.explained import PATH, Proof
from weighbridge.model.measurement import (
    ALL_CPU,
    CONNECTION_DROPS,
    CPU_SYSTEM,
    DISK_FLUSHES,
    DISK_TIME,
    PACKET_SIZE,
    PAGE_FAULTS,
    RETRANSMITS,
    SEGMENTS,
    SOFTIRQ_SHARE,
    SOFTNET_DROPS,
    SOFTNET_SQUEEZES,
    SWITCHES,
    THROTTLED_PERIODS,
    THROTTLED_TIME,
    VM_EXITS,
)
from weighbridge.model.mechanism import DeclaredMechanism, set_options

_SYSTEM_CALLS = (ALL_CPU, CPU_SYSTEM.name)
_CONNECTIONS = (ALL_CPU, SOFTIRQ_SHARE, CONNECTION_DROPS)
_PACKET_FILTER = (ALL_CPU, SOFTIRQ_SHARE, SOFTNET_DROPS, SOFTNET_SQUEEZES)
_SEGMENTATION = (ALL_CPU, SOFTIRQ_SHARE, SEGMENTS, PACKET_SIZE, SOFTNET_DROPS, SOFTNET_SQUEEZES)
_USER_SPACE_PACKETS = (ALL_CPU, SWITCHES, PACKET_SIZE)
_THROTTLING = (THROTTLED_TIME, THROTTLED_PERIODS)
_DISK = (DISK_FLUSHES, DISK_TIME)
_CONTAINER_PAPER = (
    "Felter et al., An Updated Performance Comparison of Virtual Machines and Linux Containers, ISPASS 2015"
)
_GVISOR_PAPER = "Young et al., The True Cost of Containing: A gVisor Case Study, HotCloud 2019"

PLUGINS = (
    # Netfilter tracks each connection and rewrites each packet, and packets cross the engine's rules. From another
    # host, they are also forwarded to the container's bridge.
    DeclaredMechanism(
        kind="address-translation",
        title="address translation and forwarding (netfilter)",
        summary="address translation of published ports, including connection tracking and packet-filter rules",
        switched="published port → the container's own address",
        remedy="connect to the container's own address, or use the host's network",
        source=_CONTAINER_PAPER,
        off_with=("docker-proxy",),
        counters=_CONNECTIONS,
        proof=Proof(of=PATH, fact="translation", off="none"),
        switch_off=switches.without_address_translation,
    ),
    # The kernel compares each opened file, mount, signal and socket with the rules of the profile.
    DeclaredMechanism(
        kind="apparmor",
        title="AppArmor profile",
        summary="the AppArmor profile of Docker and Podman containers, if the kernel has AppArmor",
        switched="default → unconfined",
        remedy="apparmor: unconfined, or a shorter profile, if you trust the program",
        source="Docker documentation, AppArmor security profiles for Docker; apparmor(7)",
        counters=_SYSTEM_CALLS,
        proof=Proof(fact=facts.APPARMOR, off="unconfined"),
        switch_off=set_options(
            {"apparmor": "unconfined"},
            unless={"runtime": "runsc", "rootless": True},  # neither has a profile
        ),
        reason_absent=switches.no_apparmor,
    ),
    # With br_netfilter, a frame between two ports of a bridge crosses the host's IP rules and connection tracking.
    DeclaredMechanism(
        kind="bridge-netfilter",
        title="bridge netfilter (br_netfilter)",
        summary="the packet filter for frames on a bridge (br_netfilter)",
        switched="bridge-nf-call-iptables 1 → 0",
        remedy="bridge-nf-call-iptables=0, if no rule has to filter traffic between containers on a bridge",
        source="Linux kernel documentation, networking/bridge; moby/moby#48492",
        counters=_PACKET_FILTER,
        proof=Proof(fact=facts.BRIDGE_NETFILTER, off="off"),
        switch_off=set_options({"bridge_netfilter": False}, needs="network"),
    ),
    # The kernel checks capabilities in calls that need one. A program without a capability takes another path, or
    # fails. Engines let more calls through their system-call filter if a container has more capabilities, so that
    # filter is off on both sides.
    DeclaredMechanism(
        kind="capabilities",
        title="fewer capabilities",
        summary="dropped capabilities of a container's programs, if a study changes them or names this mechanism",
        switched="own set → all",
        remedy="the capabilities that the program needs (cap_add)",
        source="capabilities(7); Docker documentation, Runtime privilege and Linux capabilities",
        off_with=("seccomp",),
        counters=_SYSTEM_CALLS,
        proof=Proof(fact=facts.CAPABILITIES),
        switch_off=switches.first_of(switches.with_all_capabilities, switches.without_part("capabilities")),
    ),
    # Programs see their own group as the root in /proc and /sys, so a runtime that sizes itself by it can be wrong.
    DeclaredMechanism(
        kind="cgroup-namespace",
        title="control-group namespace",
        summary="a private control-group namespace, if a study requests one",
        switched="private → the host's",
        remedy="cgroup_namespace: host, if programs are allowed to see the host's groups",
        source="cgroup_namespaces(7)",
        proof=Proof(fact=facts.NAMESPACES, off=r"(?!.*\bcgroup).*"),
        switch_off=set_options({"cgroup_namespace": "host"}),
    ),
    # The kernel looks up each packet in the table and enters each new connection. Published ports need the table. A
    # container's own namespace also tracks if the engine's rules for its name server are there.
    DeclaredMechanism(
        kind="connection-tracking",
        title="the host's connection tracking (conntrack)",
        summary="connection tracking of a host's packet filter (conntrack)",
        switched="tracked → NOTRACK",
        remedy="NOTRACK rules for this traffic, if its addresses are not translated",
        source="iptables-extensions(8), CT: --notrack",
        off_with=(
            "address-translation",
            "docker-proxy",
        ),
        counters=_CONNECTIONS,
        proof=Proof(fact=facts.CONNECTION_TRACKING, off="off"),
        switch_off=set_options({"conntrack": False}, needs="network"),
    ),
    # Each period has a quota. A program that has used it up waits for the next period.
    DeclaredMechanism(
        kind="cpu-limit",
        title="CPU limit",
        summary="a CPU limit that only this environment has",
        switched="own limit → the study's",
        remedy="a higher limit, a shorter period, or no more threads than CPUs",
        source="Linux kernel documentation, scheduler/sched-bwc",
        off_with=("cpu-period",),
        counters=_THROTTLING,
        proof=Proof(fact=facts.CPU_LIMIT),
        switch_off=switches.with_usual_cpu_limit,
    ),
    # Threads use up a quota together, and all of them wait for the rest of its period. A shorter period means a
    # shorter wait.
    DeclaredMechanism(
        kind="cpu-period",
        title="CPU limit's period",
        summary="the period of a CPU limit: in a long period, a program can use up its quota early and must "
        "then wait",
        switched="own period → 10 ms",
        remedy="a shorter period (docker run --cpu-period), or no more threads than CPUs",
        source="Linux kernel documentation, scheduler/sched-bwc",
        counters=_THROTTLING,
        proof=Proof(fact=facts.CPU_LIMIT, off=r".* in each 10 ms"),
        switch_off=switches.with_short_period,
    ),
    # A sync does not wait for anything, so it is faster than on a disk, and nothing is kept.
    DeclaredMechanism(
        kind="data-in-memory",
        title="data in memory (tmpfs), never synced",
        summary="data in memory (tmpfs), where a sync does not wait for a disk",
        switched="tmpfs → the usual storage",
        remedy="a volume for data that must be kept",
        source="Linux kernel documentation, filesystems/tmpfs",
        counters=_DISK,
        proof=Proof(fact=facts.DATA_FILE_SYSTEM, off="(?!tmpfs$).*"),
        switch_off=switches.use_usual_storage("tmpfs"),
    ),
    # The mode decides whether the disk bypasses the host's page cache. In the mode unsafe, a flush waits for nothing.
    DeclaredMechanism(
        kind="disk-cache",
        title="cache mode of the guest's disk",
        summary="the cache mode of a guest's disk, which can ignore flushes or flush after each write",
        switched="own mode → writeback, which flushes when the guest does",
        remedy="cache: writeback or none; after a crash, unsafe loses synced data",
        source="QEMU documentation, qemu-system(1): -drive cache",
        counters=_DISK,
        proof=Proof(fact=facts.DISK_CACHE, off="writeback"),
        switch_off=set_options({"cache": "writeback"}, needs="storage"),
    ),
    # The proxy accepts the client's connection and opens another one to the container.
    DeclaredMechanism(
        kind="docker-proxy",
        title="docker-proxy",
        summary="docker-proxy, which forwards ports that are published on loopback or without a packet filter",
        switched="docker-proxy → address translation",
        remedy="connect to the port at the address of the bridge or the host instead of loopback",
        source="Docker documentation, Packet filtering and firewalls",
        counters=(ALL_CPU, SWITCHES, CONNECTION_DROPS),
        proof=Proof(of=PATH, fact="translation", off="(?!proxy).*"),
        switch_off=switches.without_docker_proxy,
    ),
    # Each access to the controller leaves the guest. Virtio passes requests through shared memory.
    DeclaredMechanism(
        kind="emulated-disk",
        title="emulated disk controller",
        summary="an emulated disk controller of a guest instead of virtio",
        switched="emulated → virtio",
        remedy="disk: virtio",
        source="Russell, virtio: Towards a De-Facto Standard for Virtual I/O Devices, OSR 2008",
        counters=(*_DISK, VM_EXITS),
        proof=Proof(fact=facts.DISK_DRIVER, off="virtio_blk"),
        switch_off=set_options({"disk": "virtio"}, needs="storage"),
    ),
    # Each access to the card leaves the guest. Virtio passes many packets at once through shared memory.
    DeclaredMechanism(
        kind="emulated-nic",
        title="emulated network card",
        summary="an emulated network card of a guest instead of virtio",
        switched="emulated → virtio",
        remedy="nic: virtio",
        source="Russell, virtio: Towards a De-Facto Standard for Virtual I/O Devices, OSR 2008",
        counters=(ALL_CPU, VM_EXITS),
        proof=Proof(fact=facts.NETWORK_DRIVER, off="virtio_net"),
        switch_off=set_options({"nic": "virtio"}, unless={"nic": "vhost"}, needs="network"),
    ),
    # IPsec encrypts each packet of an overlay network.
    DeclaredMechanism(
        kind="encryption",
        title="encryption (IPsec)",
        summary="encryption of an overlay network",
        switched="on → off",
        remedy="encrypt only the traffic that needs it, in the program (TLS)",
        source="Docker documentation, Overlay network driver: encrypt traffic",
        counters=(ALL_CPU, SOFTIRQ_SHARE),
        switch_off=set_options({"encrypted": False}),
    ),
    # A chain is a list, and a packet that matches no rule is compared with all of them.
    DeclaredMechanism(
        kind="filter-rules",
        title="packet-filter rules",
        summary="a long chain of packet-filter rules",
        switched="a long chain → none",
        remedy="accept established connections first, or use sets instead of lists (ipset, nftables)",
        source="nftables wiki, Performance; iptables(8)",
        counters=_PACKET_FILTER,
        proof=Proof(fact=facts.FILTER_RULES, off="0"),
        switch_off=set_options({"filter_rules": 0}, needs="network"),
    ),
    # With large pages on the host, a TLB miss reads fewer entries. The memory is reserved before the guest boots,
    # including memory that the guest never uses. Without them, the kernel uses ordinary or transparent huge pages.
    DeclaredMechanism(
        kind="guest-huge-pages",
        title="huge pages of the guest's memory",
        summary="reserved huge pages for a guest's memory, which are meant to save time",
        switched="reserved huge pages → pages chosen by the kernel",
        remedy="huge_pages: false, if other programs need the memory",
        source="Linux kernel documentation, admin-guide/mm/hugetlbpage",
        counters=(ALL_CPU,),
        proof=Proof(fact=facts.MEMORY_PAGES, off="ordinary|mostly transparent huge pages"),
        switch_off=set_options({"huge_pages": False}),
    ),
    # Each virtual CPU has its own queue for packets, with its own interrupt.
    DeclaredMechanism(
        kind="guest-queues",
        title="several queues of the guest's card",
        summary="several queues of a guest's virtio card (multiqueue), which are meant to save time",
        switched="several → one",
        remedy="queues: 1, if few connections are busy at the same time",
        source="Linux kernel, drivers/net/virtio_net.c; QEMU documentation, multiqueue virtio-net",
        counters=(ALL_CPU, SWITCHES),
        proof=Proof(fact=facts.NETWORK_QUEUES, off="1"),
        switch_off=set_options({"queues": 1}, needs="network"),
    ),
    # A second process opens each file for the sandbox, which cannot open files itself.
    DeclaredMechanism(
        kind="gvisor-gofer",
        title="gVisor's gofer",
        summary="gVisor's gofer, a process that opens files for it",
        switched="gofer → direct access",
        remedy="runsc --directfs, the default since 2023",
        source=_GVISOR_PAPER,
        counters=(ALL_CPU, SWITCHES),
        proof=Proof(fact=facts.GVISOR_FILES, off="true"),
        switch_off=set_options({"runsc_files": "direct"}),
    ),
    # Written data is in a file that gVisor maps, so a sync does nothing and a crash loses everything.
    DeclaredMechanism(
        kind="gvisor-layer",
        title="gVisor's own layer, never synced",
        summary="the writable layer in gVisor's own file, which is never synced",
        switched="gVisor's → the engine's",
        remedy="a volume for data that must be kept",
        source="gVisor documentation, Root filesystem overlay; google/gvisor#192",
        counters=_DISK,
        proof=Proof(fact=facts.GVISOR_LAYERS, off="none"),
        switch_off=switches.with_layer_of_engine,
    ),
    # A TCP/IP stack in user space makes and reads each packet of the container's interface.
    DeclaredMechanism(
        kind="gvisor-network",
        title="gVisor's network stack",
        summary="gVisor's own network stack instead of the kernel's",
        switched="own stack → the kernel's, in the container's network",
        remedy="runsc --network=host, if the container is allowed to use the kernel's network stack",
        source=_GVISOR_PAPER,
        counters=(ALL_CPU, SOFTIRQ_SHARE, PACKET_SIZE),
        proof=Proof(fact=facts.GVISOR_NETWORK, off="host"),
        switch_off=set_options(
            {"runsc_network": "host"}, only={"runtime": "runsc"}, unless={"network": "host"}, needs="network"
        ),
    ),
    # With ptrace, each system call stops its thread twice and wakes another process. Systrap answers in place.
    DeclaredMechanism(
        kind="gvisor-platform",
        title="gVisor's platform (ptrace)",
        summary="gVisor's platform ptrace, which stops a thread at each system call",
        switched="ptrace → the engine's own (systrap)",
        remedy="platform systrap, the default since 2023, or kvm",
        source="gVisor documentation, Platform Guide",
        counters=(ALL_CPU, SWITCHES),
        proof=Proof(fact=facts.GVISOR_PLATFORM, off="(?!ptrace).*"),
        switch_off=set_options({"runsc_platform": None}, only={"runsc_platform": "ptrace"}),
    ),
    # KVM polls before it gives up the CPU: the guest wakes up sooner, and the host's CPU is busy in the meantime.
    DeclaredMechanism(
        kind="halt-polling",
        title="halt polling (KVM)",
        summary="KVM's polling while a guest waits; it cannot be switched off for one guest",
        switched="on → off",
        remedy=f"{switches.POLLING}: larger for latency, 0 for CPU time, for all guests of the host",
        source="Linux kernel documentation, virt/kvm/halt-polling",
        switch_off=switches.cannot_stop_polling,
    ),
    # Init collects processes that no other process waits for and passes signals on. A start takes one more program.
    DeclaredMechanism(
        kind="init",
        title="init (tini, catatonit)",
        summary="the engine's init (tini, catatonit) as the first process of a container",
        switched="on → off",
        remedy="no init, if the program waits for its own children",
        source="krallin/tini, README; Docker documentation, docker run: --init",
        proof=Proof(fact=facts.FIRST_PROCESS),
        switch_off=set_options({"init": False}),
    ),
    # These are the settings of the network and IPC namespaces.
    DeclaredMechanism(
        kind="kernel-settings",
        title="kernel settings (sysctls)",
        summary="kernel settings (sysctls) that the study sets for the environment",
        switched="the study's → the kernel's defaults",
        remedy="keep the kernel's defaults",
        source="Linux kernel documentation, admin-guide/sysctl",
        switch_off=switches.set_keys({"sysctls": {}}),
    ),
    # The kernel looks for a rule at the opened file and at each folder above it, up to the root.
    DeclaredMechanism(
        kind="landlock",
        title="rules for files (Landlock)",
        summary="a sandbox's rules of Landlock for files and folders",
        switched="rules → none",
        remedy="fewer layers of rules, or rules for folders that are closer to the opened files",
        source="Linux kernel documentation, userspace-api/landlock; landlock-lsm/linux#24",
        off_with=("landlock-rules",),
        counters=_SYSTEM_CALLS,
        proof=Proof(fact=facts.OUTSIDE_WRITES, off="allowed"),
        switch_off=switches.without_part("landlock"),
    ),
    # The kernel keeps the rules in a tree. At the opened file and at each folder above it, it looks into this tree.
    DeclaredMechanism(
        kind="landlock-rules",
        title="additional rules for files (Landlock)",
        summary="additional rules of Landlock, each for a file that no program opens; starts include making them",
        switched="additional rules → only the rules of the preset",
        remedy="one rule for a folder instead of a rule for each file in it",
        source="Linux kernel documentation, userspace-api/landlock; Linux kernel, security/landlock/ruleset.c",
        counters=_SYSTEM_CALLS,
        proof=Proof(fact=facts.ADDITIONAL_RULES, off="0"),
        switch_off=set_options({"rules": 0}),
    ),
    # Near its limit, a group drops cached file contents and reads them again.
    DeclaredMechanism(
        kind="memory-limit",
        title="memory limit",
        summary="a memory limit that only this environment has",
        switched="own limit → the study's",
        remedy="a higher limit (cached file contents count towards it)",
        source="Linux kernel documentation, admin-guide/cgroup-v2: memory",
        counters=(PAGE_FAULTS.name,),
        proof=Proof(fact=facts.MEMORY_LIMIT),
        switch_off=switches.with_usual_memory_limit,
    ),
    # Smaller packets mean more packets. Packets that are too large for the network below are split (VXLAN adds 50
    # bytes).
    DeclaredMechanism(
        kind="mtu",
        title="MTU of the network",
        summary="an MTU of the network that differs from the MTU of the host's interface",
        switched="own MTU → MTU of the host's interface (overlay: 50 bytes less)",
        remedy="the MTU of the network below, minus 50 bytes for VXLAN",
        source="Docker documentation, Overlay and bridge network drivers: com.docker.network.driver.mtu",
        counters=(ALL_CPU, SOFTIRQ_SHARE, SEGMENTS, RETRANSMITS, PACKET_SIZE, SOFTNET_DROPS, SOFTNET_SQUEEZES),
        proof=Proof(of=PATH, fact="mss"),
        switch_off=set_options({"mtu": None}, needs="network"),
    ),
    # The cluster's network checks each connection, or each packet, before it lets it through.
    DeclaredMechanism(
        kind="network-policy",
        title="NetworkPolicy",
        summary="a NetworkPolicy of a cluster",
        switched="a policy that allows this client → none",
        remedy="fewer policies, or another implementation of them (nftables, eBPF)",
        source="Kubernetes documentation, Network Policies",
        counters=(ALL_CPU, SOFTIRQ_SHARE),
        proof=Proof(fact="network policy", off="none"),
        switch_off=set_options({"policy": None}, needs="network"),
    ),
    # A server answers requests, with its own page cache, file system and disk. Each close and sync waits for it.
    DeclaredMechanism(
        kind="nfs",
        title="NFS (protocol, client and server)",
        summary="NFS itself (protocol, client and server), with any options",
        switched="NFS → the usual storage",
        remedy="a local disk for data that is synced often",
        source="nfs(5)",
        off_with=(
            "nfs-sync",
            "nfs-mount",
            "nfs-version",
            "nfs-sizes",
        ),
        counters=_DISK,
        proof=Proof(fact="storage: mounted"),
        switch_off=switches.use_usual_storage("nfs"),
    ),
    # With sync, the program waits for each write. Without it, the client sends the writes at a sync or close.
    DeclaredMechanism(
        kind="nfs-mount",
        title="NFS mount: sync",
        summary="sync of an NFS mount",
        switched="sync → async",
        remedy="mount: async, which is safe for programs that sync",
        source="nfs(5): the sync mount option",
        counters=_DISK,
        proof=Proof(fact="storage: mounted", off=r"(?!.*\bsync\b).*"),
        switch_off=switches.set_storage({"mount": "async"}),
    ),
    # Smaller sizes mean more requests, each with a round trip.
    DeclaredMechanism(
        kind="nfs-sizes",
        title="NFS read and write size",
        summary="read and write sizes of an NFS mount (rsize, wsize) that differ from the negotiated sizes",
        switched="configured → negotiated",
        remedy="do not set rsize and wsize: client and server then negotiate the largest sizes",
        source="nfs(5): rsize, wsize",
        proof=Proof(fact="storage: mounted"),
        switch_off=switches.set_storage({"read_size": None, "write_size": None}),
    ),
    # Each commit waits for the server's disk. Without it, a crash of the server loses acknowledged writes.
    DeclaredMechanism(
        kind="nfs-sync",
        title="NFS export: sync",
        summary="sync of an NFS export",
        switched="sync → async (less durable)",
        remedy="a faster disk or a log device in the server; async loses data in a crash",
        source="exports(5)",
        counters=_DISK,
        proof=Proof(fact="storage: export", off=r"(?!.*\bsync\b).*"),
        switch_off=switches.set_storage({"export": "async"}),
    ),
    # Version 3 has no state and uses other requests for the same operation. Version 4.0 has no sessions.
    DeclaredMechanism(
        kind="nfs-version",
        title="NFS version",
        summary="a version of the NFS protocol that is older than 4.2",
        switched=f"own version → {switches.NFS_VERSION}",
        remedy=f"version: {switches.NFS_VERSION}",
        source="nfs(5)",
        proof=Proof(fact="storage: mounted", off=r".*\bvers=4\.2\b.*"),
        switch_off=switches.set_storage({"version": switches.NFS_VERSION}),
    ),
    # When a program starts, set-user-id bits, file capabilities and changes of the profile have no effect.
    DeclaredMechanism(
        kind="no-new-privileges",
        title="no new privileges (no_new_privs)",
        summary="no-new-privileges (no_new_privs), if a study requests it",
        switched="on → off",
        remedy="no_new_privileges: false, if you trust the program",
        source="Linux kernel documentation, userspace-api/no_new_privs",
        counters=_SYSTEM_CALLS,
        proof=Proof(fact=facts.NEW_PRIVILEGES, off="allowed"),
        switch_off=switches.first_of(
            set_options({"no_new_privileges": False}), switches.without_part("no-new-privileges")
        ),
    ),
    # With TSO, GSO and GRO, up to 64 KiB pass through the network stack, a veth and a bridge as one packet.
    DeclaredMechanism(
        kind="offloads",
        title="missing offloads (TSO, GSO, GRO, checksums)",
        summary="offloads (TSO, GSO, GRO, checksums) that are switched off on a container's interface",
        switched="off → on",
        remedy="ethtool -K INTERFACE tso on gso on gro on tx on rx on",
        source="Linux kernel documentation, networking/segmentation-offloads",
        counters=_SEGMENTATION,
        proof=Proof(fact=facts.OFFLOADS),
        switch_off=set_options({"no_offloads": ()}, needs="network"),
    ),
    # Some programs close every file that could be open when they start. With a limit of 2^30, that takes minutes.
    DeclaredMechanism(
        kind="open-files",
        title="limit of open files",
        summary="a limit of open files that differs from the baseline's",
        switched="own limit → the baseline's",
        remedy="a lower limit (docker run --ulimit nofile=1024), or a program that uses close_range(2)",
        source="moby/moby#38814: Default per-container ulimits are too generous",
        proof=Proof(fact=facts.OPEN_FILES),
        switch_off=switches.with_file_limit_of_baseline,
    ),
    # Programs see other host names, shared memory and control groups. Only making the namespaces takes time.
    DeclaredMechanism(
        kind="other-namespaces",
        title="namespaces for IPC, host names and control groups",
        summary="a sandbox's namespaces for IPC, host names (UTS) and control groups",
        switched="own namespaces → the host's",
        remedy="share them, if programs are allowed to see the host's",
        source="namespaces(7)",
        proof=Proof(fact=facts.NAMESPACES, off=r"(?!.*\buts).*"),
        switch_off=switches.without_part("other-namespaces"),
    ),
    # The data is on another file system, with another journal, than the baseline's data.
    DeclaredMechanism(
        kind="own-disk",
        title="own file system",
        summary="a file system that differs from the baseline's",
        switched="own file system → the baseline's",
        remedy="the same file system for both",
        source="Weighbridge: a disk is a file system made for the run, on a loop device",
        counters=_DISK,
        proof=Proof(fact="storage: mounted"),
        switch_off=switches.with_disk_of_baseline,
    ),
    # Packets leave the loopback interface, through a veth pair, a bridge, a tunnel or a user's program. If a client
    # on a bridge uses a server on another host, the translation of its address is included.
    DeclaredMechanism(
        kind="own-network",
        title="own network (namespace, veth, bridge)",
        summary="a network namespace and its connection to the host (veth, bridge, VXLAN, pasta)",
        switched="own network → the host's",
        remedy="network: host, if ports cannot clash",
        source=_CONTAINER_PAPER,
        off_with=(
            "address-translation",
            "docker-proxy",
            "encryption",
            "service",
            "network-policy",
            "user-mode-network",
            "mtu",
            "offloads",
            "vxlan-offload",
            "bridge-netfilter",
            "connection-tracking",
            "filter-rules",
            "gvisor-network",
        ),
        counters=(ALL_CPU, SOFTIRQ_SHARE, PACKET_SIZE, SOFTNET_DROPS, SOFTNET_SQUEEZES),
        proof=Proof(fact=facts.NAMESPACES, off=r"(?!.*\bnet).*"),
        switch_off=switches.with_network_of_host,
    ),
    # Each process gets a number in each namespace. The first process of a namespace waits for orphans.
    DeclaredMechanism(
        kind="pid-namespace",
        title="process namespace with its own /proc",
        summary="a sandbox's namespace for processes (PID), with its own /proc",
        switched="own namespace → the host's",
        remedy="share it, if programs are allowed to see and signal other processes",
        source="pid_namespaces(7)",
        proof=Proof(fact=facts.NAMESPACES, off=r"(?!.*\bpid).*"),
        switch_off=switches.without_part("pid-namespace"),
    ),
    # Each fork is counted in every parent group. At the limit it fails, or a pool of threads stays smaller.
    DeclaredMechanism(
        kind="pids-limit",
        title="limit of processes (pids)",
        summary="a limit of processes and threads (pids cgroup) that only this environment has",
        switched="own limit → the native limit",
        remedy="a higher limit (--pids-limit), or fewer threads",
        source="Linux kernel documentation, admin-guide/cgroup-v2: PID",
        proof=Proof(fact=facts.PROCESSES),
        switch_off=set_options({"pids_limit": None}),
    ),
    # A virtual CPU keeps its caches, but waits if another thread of the hypervisor uses its CPU.
    DeclaredMechanism(
        kind="pinned-cpus",
        title="pinned virtual CPUs",
        summary="a guest's virtual CPUs that are pinned to CPUs of the host",
        switched="one CPU each → any CPU of the limit",
        remedy="no pin, if other threads of the hypervisor need the same CPUs",
        source="Red Hat Enterprise Linux 7, Virtualization Tuning and Optimization Guide: NUMA",
        proof=Proof(fact="virtual CPUs"),
        switch_off=set_options({"pin": None}),
    ),
    # An OCI runtime creates a container and starts its first process. Some runtimes also serve its system calls.
    DeclaredMechanism(
        kind="runtime",
        title="OCI runtime",
        summary="another OCI runtime than the engine's usual one, such as crun, youki or Kata Containers",
        switched="own runtime → the engine's usual one",
        remedy="the engine's usual runtime",
        source="OCI Runtime Specification, Runtime and Lifecycle",
        counters=(ALL_CPU, SWITCHES),
        proof=Proof(fact=facts.RUNTIME),
        switch_off=switches.with_engines_runtime,
    ),
    # The supervisor decides about some system calls: the program waits until another process has answered.
    DeclaredMechanism(
        kind="sandbox-supervisor",
        title="supervisor of system calls (seccomp user notification)",
        summary="a sandbox's supervisor, a process that decides about some system calls of the program",
        switched="supervisor → rules and a filter alone",
        remedy="sandlock --no-supervisor, if no limit or address rule needs it",
        source="seccomp_unotify(2); multikernel/sandlock",
        counters=(ALL_CPU, SWITCHES),
        switch_off=switches.without_part("sandbox-supervisor"),
    ),
    # Each system call runs a BPF program first. Some kernels also hold back speculative stores under seccomp.
    DeclaredMechanism(
        kind="seccomp",
        title="system-call filter (seccomp)",
        summary="the system-call filter of Docker and Podman containers, and of sandboxes that can leave it out",
        switched="default → unconfined",
        remedy="seccomp: unconfined, or a shorter profile, if you trust the program",
        source="Linux kernel documentation, userspace-api/seccomp_filter",
        counters=_SYSTEM_CALLS,
        proof=Proof(fact=facts.SECCOMP, off="off"),
        switch_off=switches.first_of(
            set_options(
                {"seccomp": "unconfined"},
                unless={"runtime": "runsc"},  # gVisor serves its system calls itself
            ),
            switches.without_part("seccomp"),
        ),
    ),
    # The rules of kube-proxy, or of its replacement, translate each connection to the address of a pod.
    DeclaredMechanism(
        kind="service",
        title="Service (kube-proxy)",
        summary="a Service or node port in front of a pod",
        switched="Service → the pod's own address",
        remedy="a headless Service, if the client can choose among the addresses of the pods",
        source="Kubernetes documentation, Virtual IPs and Service Proxies",
        counters=_CONNECTIONS,
        proof=Proof(of=PATH, fact="translation", off="none"),
        switch_off=set_options({"reach": "pod"}, needs="network"),
    ),
    # Databases and browsers share memory in /dev/shm. If it is full, they fail or use files instead.
    DeclaredMechanism(
        kind="shm-size",
        title="size of /dev/shm",
        summary="a size of /dev/shm that only this environment has",
        switched="own size → the default of its kind (Docker: 64 MiB)",
        remedy="shm_size: as much as the program needs",
        source="shm_overview(7); Docker documentation, docker run: --shm-size",
        proof=Proof(fact=facts.SHARED_MEMORY),
        switch_off=switches.set_keys({"shm_size": None}),
    ),
    # slirp4netns, pasta or a port forwarder copies data that a bridge would pass on inside the kernel.
    DeclaredMechanism(
        kind="user-mode-network",
        title="rootless networking (pasta or slirp4netns, user namespace)",
        summary="the user-mode network of rootless containers (slirp4netns, pasta), with its port forwarder",
        switched="rootless, through a user-mode program → root's bridge",
        remedy="a bridge created by root, or network: host",
        source="Podman documentation, podman-run: --network",
        counters=_USER_SPACE_PACKETS,
        proof=Proof(of=PATH, fact="translation", off="none"),
        switch_off=switches.with_bridge_of_root,
    ),
    # The kernel translates the ids of each file and process, and programs have no rights on the machine itself.
    DeclaredMechanism(
        kind="user-namespace",
        title="user namespace",
        summary="a user namespace for root's containers, if a study requests one",
        switched="own namespace → the host's",
        remedy="no user namespace, if root in the container is allowed to be root on the host",
        source="user_namespaces(7); Podman documentation, podman-run: --uidmap",
        proof=Proof(fact=facts.NAMESPACES, off=r"(?!.*\buser).*"),
        switch_off=set_options({"user_namespace": False}),
    ),
    # libslirp, in a process of the host, accepts each connection and opens another one.
    DeclaredMechanism(
        kind="user-network",
        title="user network (slirp)",
        summary="QEMU's own network stack with forwarded ports instead of a tap on a bridge",
        switched="user network → tap on a bridge",
        remedy="network: bridge, which needs root",
        source="QEMU documentation, Using the user mode network stack",
        counters=_USER_SPACE_PACKETS,
        proof=Proof(fact="network"),
        switch_off=set_options({"network": "bridge"}, only={"network": "user"}, needs="network"),
    ),
    # gVisor serves system calls itself, with its own network stack and file systems.
    DeclaredMechanism(
        kind="user-space-kernel",
        title="user-space kernel (gVisor)",
        summary="gVisor's kernel, used through Docker's runtime runsc or a RuntimeClass of a cluster",
        switched="runsc → the usual runtime, without its system-call filter",
        remedy="the usual runtime, if the kernel's own isolation is enough",
        source=_GVISOR_PAPER,
        off_with=(
            "gvisor-platform",
            "gvisor-network",
            "gvisor-gofer",
            "gvisor-layer",
        ),
        counters=(ALL_CPU, SWITCHES, PAGE_FAULTS.name),
        proof=Proof(fact=facts.KERNEL),
        switch_off=switches.with_usual_runtime,
    ),
    # This is not isolation, but its cost comes with an environment: another build, C library or allocator.
    DeclaredMechanism(
        kind="userland",
        title="own programs and libraries",
        summary="a separate root filesystem, with other builds of the programs or another C library",
        switched="own root filesystem → the study's",
        remedy="an image with the same versions, C library and allocator",
        source="Weighbridge: root filesystems are compared by version and content",
        proof=Proof(fact=facts.USERLAND),
        switch_off=switches.set_keys({"userland": None}),
    ),
    # This is not isolation, but images set variables, for example for an allocator that returns memory at once.
    DeclaredMechanism(
        kind="variables",
        title="own variables (allocator)",
        summary="environment variables of this environment, for example for the memory allocator",
        switched="own variables → the image's",
        remedy="keep the allocator's default settings, or preload another allocator",
        source="mallopt(3), environment variables",
        counters=(CPU_SYSTEM.name, PAGE_FAULTS.name),
        proof=Proof(fact=facts.VARIABLES, off="none"),
        switch_off=set_options({"variables": {}}),
    ),
    # A kernel thread moves packets between the guest's memory and the tap.
    DeclaredMechanism(
        kind="vhost",
        title="vhost",
        summary="vhost: the host's kernel carries a guest's packets instead of QEMU, which is meant to save time",
        switched="the kernel (vhost) → QEMU itself",
        remedy="nic: virtio, if vhost costs more than it saves",
        source="Linux kernel, drivers/vhost/net.c",
        counters=(ALL_CPU, SWITCHES, VM_EXITS),
        proof=Proof(fact="network"),
        switch_off=set_options({"nic": "virtio"}, only={"nic": "vhost"}, needs="network"),
    ),
    # Without it, large packets are split before they leave, each part with its own headers.
    DeclaredMechanism(
        kind="vxlan-offload",
        title="missing VXLAN offload (tx-udp_tnl-segmentation)",
        summary="segmentation of VXLAN packets in software, because the host's interface does not do it",
        switched="off → on",
        remedy="ethtool -K INTERFACE tx-udp_tnl-segmentation on, or a card that has it",
        source="Linux kernel documentation, networking/segmentation-offloads: UDP tunnels",
        counters=_SEGMENTATION,
        proof=Proof(fact=facts.VXLAN_OFFLOADS, off="on"),
        switch_off=set_options({"vxlan_offload": True}, needs="network"),
    ),
    # Files go through overlayfs, or gVisor's copy of it, and not to a file system of the host.
    DeclaredMechanism(
        kind="writable-layer",
        title="writable layer (overlayfs)",
        summary="data in the writable layer of a container instead of a volume",
        switched="layer → volume",
        remedy="a volume for written data",
        source="Docker documentation, OverlayFS storage driver: performance",
        off_with=(
            "own-disk",
            "gvisor-layer",
        ),
        counters=_DISK,
        proof=Proof(fact=facts.DATA_FILE_SYSTEM, off="(?!overlay$).*"),
        switch_off=switches.use_usual_storage("layer"),
    ),
)
