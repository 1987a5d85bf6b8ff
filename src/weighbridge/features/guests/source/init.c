/* The first process of a guest, in its initial RAM disk: loads drivers, mounts the disk, gives the network interface
 * its address, and starts the launcher on the port to the host. When the launcher ends, so does the guest.
 *
 *     init [--modules NAME,...] [--prove] [--disk DEVICE] [--data DEVICE] [--address ADDRESS --mask MASK]
 *          [--gateway ADDRESS] [--mtu NUMBER] [--files NUMBER] [--terminal DEVICE] [--vsock PORT] --name NAME
 *          [--system PROGRAM,WORD,...] [--serial DEVICE] [--layer FOLDER] [--taken] [--off]
 *
 * What fails is told on the console, whose last lines the host reads. With --prove it ends as soon as it runs.
 * With --system the disk, writable, becomes the root folder of all, and PROGRAM of it takes the launcher's place: the
 * guest is a host itself. Its data is then where hosts keep what is brought to them.
 * With --terminal the launcher is on that device in place of the port, behind a line that says so: it may be the
 * console, to which the kernel then writes nothing but why it ends.
 * With --serial the port is a serial one. Without a --name, the host is asked for the other words over it: a boot medium
 * is the same for all guests. Such a machine has firmware that would boot it again, so that it is switched off in the end, as
 * one is with --off. With --vsock it connects to that port of its host instead.
 * "--disk hostfs" is the folder of the machine that a guest of user-mode Linux may see. The launcher knows --layer and --taken.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <net/route.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define PORT "weighbridge"   /* the name of the virtio-serial port */
#define WAIT_MS 10000        /* for a device that its driver has yet to find */
#define FOLLOWS "weighbridge: the launcher follows\n"
#define CONSOLE_LEVEL 8      /* of klogctl(2): what is less urgent than that is not written to the console */
#define MODULES 64
#define WORDS 16
#define KEPT "/root/var/cache/weighbridge"
#define ASKS "\nweighbridge: the guest asks\n"
#define ASKED 256            /* words of the answer */
#define HOSTFS "hostfs"

/* What this process is told. */
static const char *disk, *data, *address, *mask = "255.255.255.0", *gateway, *mtu, *serial, *terminal, *vsock;
static char *names[MODULES], *files = "0", *name, *layered, *system_words[WORDS + 1];
static int modules, prove, taken, off, serial_port = -1;

static void end_guest(void)
{
	sync();
	reboot(serial || off ? RB_POWER_OFF : RB_AUTOBOOT);  /* the hypervisor is told to end instead */
	for (;;)
		pause();
}

static void fail(const char *what, const char *about)
{
	printf("weighbridge: the guest cannot %s %s: %s\n", what, about, strerror(errno));
	fflush(stdout);
	end_guest();
}

static void must_mount(const char *source, const char *place, const char *kind, unsigned long flags, const char *how)
{
	mkdir(place, 0755);
	if (mount(source, place, kind, flags, how) != 0)
		fail("mount", place);
}

static void make_devices(void)
{
	must_mount("proc", "/proc", "proc", 0, NULL);
	must_mount("sys", "/sys", "sysfs", 0, NULL);
	must_mount("dev", "/dev", "devtmpfs", 0, NULL);
	int console = open("/dev/console", O_RDWR);
	for (int each = 0; console >= 0 && each < 3; each++)
		dup2(console, each);
	must_mount("pts", "/dev/pts", "devpts", 0, "mode=620,ptmxmode=666");
	must_mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
	static const char *const links[][2] = {
		{"/proc/self/fd", "/dev/fd"}, {"fd/0", "/dev/stdin"}, {"fd/1", "/dev/stdout"}, {"fd/2", "/dev/stderr"}};
	for (size_t each = 0; each < sizeof links / sizeof *links; each++)
		if (symlink(links[each][0], links[each][1]) != 0 && errno != EEXIST)
			fail("make", links[each][1]);
}

static void load(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0 || (syscall(SYS_finit_module, file, "", 0) != 0 && errno != EEXIST))
		fail("load", path);
	close(file);
}

/* Every line of /modules is a name and the files that it takes, in their order. */
static void load_modules(char **names, int count)
{
	char *line = NULL;
	size_t room = 0;
	FILE *list = fopen("/modules", "re");
	if (list == NULL)
		fail("open", "/modules");
	while (getline(&line, &room, list) > 0) {
		char *name = strtok(line, " \n");
		for (int each = 0; name && each < count; each++)
			if (strcmp(names[each], name) == 0)
				for (char *path; (path = strtok(NULL, " \n"));)
					load(path);
	}
	free(line);
	fclose(list);
}

static void doze(void)
{
	struct timespec little = {0, 2000000};
	nanosleep(&little, NULL);
}

static void wait_for(const char *path)
{
	for (int waited = 0; access(path, F_OK) != 0; waited += 2) {
		if (waited > WAIT_MS)
			fail("find", path);
		doze();
	}
}

static struct sockaddr address_of(const char *text)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	struct sockaddr any;
	if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
		fail("use the address", text);
	memcpy(&any, &address, sizeof any);
	return any;
}

static void set(int socket, unsigned long what, void *how, const char *about)
{
	if (ioctl(socket, what, how) != 0)
		fail("set up the network:", about);
}

static void bring_up(int socket, const char *name)
{
	struct ifreq request = {0};
	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	set(socket, SIOCGIFFLAGS, &request, name);
	request.ifr_flags |= IFF_UP | IFF_RUNNING;
	set(socket, SIOCSIFFLAGS, &request, name);
}

/* User-mode Linux numbers the interfaces of its fastest driver by itself. */
static void name_interface(int socket)
{
	struct ifreq request = {.ifr_name = "vec0", .ifr_newname = "eth0"};
	if (access("/sys/class/net/vec0", F_OK) == 0)
		set(socket, SIOCSIFNAME, &request, "vec0");
	wait_for("/sys/class/net/eth0");
}

static void set_up_network(const char *address, const char *mask, const char *gateway, const char *mtu)
{
	int socket_of = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (socket_of < 0)
		fail("open", "a socket");
	bring_up(socket_of, "lo");
	if (address) {
		struct ifreq request = {.ifr_name = "eth0"};
		name_interface(socket_of);
		request.ifr_addr = address_of(address);
		set(socket_of, SIOCSIFADDR, &request, address);
		request.ifr_netmask = address_of(mask);
		set(socket_of, SIOCSIFNETMASK, &request, mask);
		if (mtu) {
			request.ifr_mtu = atoi(mtu);
			set(socket_of, SIOCSIFMTU, &request, mtu);
		}
		bring_up(socket_of, "eth0");
	}
	if (gateway) {
		struct rtentry route = {.rt_flags = RTF_UP | RTF_GATEWAY};
		route.rt_dst = route.rt_genmask = address_of("0.0.0.0");
		route.rt_gateway = address_of(gateway);
		set(socket_of, SIOCADDRT, &route, gateway);
	}
	close(socket_of);
}

/* The port's device is named by numbers; its name is in a file of its own. */
static int open_port(void)
{
	static const char *const folder = "/sys/class/virtio-ports";
	for (int waited = 0; waited < WAIT_MS; waited += 2, doze()) {
		DIR *ports = opendir(folder);
		for (struct dirent *entry; ports && (entry = readdir(ports));) {
			char path[512], name[64] = "";
			snprintf(path, sizeof path, "%s/%s/name", folder, entry->d_name);
			int file = open(path, O_RDONLY | O_CLOEXEC);
			if (file < 0)
				continue;
			ssize_t got = read(file, name, sizeof name - 1);
			close(file);
			snprintf(path, sizeof path, "/dev/%s", entry->d_name);
			if (got > 0 && strcmp(name, PORT "\n") == 0 && (file = open(path, O_RDWR)) >= 0) {
				closedir(ports);
				return file;
			}
		}
		if (ports)
			closedir(ports);
	}
	errno = ENODEV;
	fail("open the port", PORT);
	return -1;
}

/* The host listens before the guest starts; its driver may need a moment. */
static int call_host(void)
{
	struct sockaddr_vm host = {
		.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_HOST, .svm_port = strtoul(vsock, NULL, 10)};
	int call = socket(AF_VSOCK, SOCK_STREAM, 0);
	for (int waited = 0; call < 0 || connect(call, (struct sockaddr *)&host, sizeof host) != 0; waited += 2) {
		if (call < 0 || waited > WAIT_MS)
			fail("connect to its host, port", vsock);
		doze();
	}
	return call;
}

/* Without what a terminal does to what passes through it. */
static int open_terminal(const char *path)
{
	struct termios how;
	wait_for(path);
	int file = open(path, O_RDWR | O_NOCTTY);
	if (file < 0 || tcgetattr(file, &how) != 0)
		fail("open", path);
	cfmakeraw(&how);
	fflush(stdout);
	if (tcsetattr(file, TCSADRAIN, &how) != 0 || klogctl(CONSOLE_LEVEL, NULL, 1) < 0)
		fail("set up", path);
	if (write(file, FOLLOWS, strlen(FOLLOWS)) != (ssize_t)strlen(FOLLOWS))
		fail("write to", path);
	return file;
}

/* The kernel's own helpers (modprobe) have their root folder in common with this process, and so find it, too. */
static void become_system(void)
{
	static const char *const moved[][2] = {{"/proc", "/root/proc"}, {"/sys", "/root/sys"}, {"/dev", "/root/dev"}};
	for (size_t each = 0; each < sizeof moved / sizeof *moved; each++)
		if (mount(moved[each][0], moved[each][1], NULL, MS_MOVE, NULL) != 0)
			fail("move to", moved[each][1]);
	if (chdir("/root") != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0)
		fail("change to", "the disk");
	must_mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL);
	must_mount("run", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755");
	must_mount("tmp", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/root", 1);
	setenv("LANG", "C.UTF-8", 1);
}

static void raise_files(const char *files)
{
	struct rlimit most = {strtoul(files, NULL, 10), strtoul(files, NULL, 10)};
	FILE *bound = most.rlim_max > 1 << 20 ? fopen("/proc/sys/fs/nr_open", "we") : NULL;
	if (bound) {  /* what no process may exceed, of a kernel that has just started */
		fputs(files, bound);
		fclose(bound);
	}
	if (most.rlim_max)
		setrlimit(RLIMIT_NOFILE, &most);  /* what it then is the launcher tells */
}

static void run_launcher(char **words)
{
	int port = serial ? serial_port : terminal ? open_terminal(terminal) : vsock ? call_host() : open_port();
	pid_t launcher = fork();
	if (launcher == 0) {
		dup2(port, STDIN_FILENO);
		dup2(port, STDOUT_FILENO);
		close(port);
		execv(words[0], words);
		_exit(127);
	}
	close(port);
	for (pid_t ended = 0; launcher > 0 && ended != launcher;)
		ended = wait(NULL);
}

/* Lists have commas, as the kernel gives its first process no more than 32 words. */
static int split(char *list, char **words, int most)
{
	int count = 0;
	for (char *word = strtok(list, ","); word && count < most; word = strtok(NULL, ","))
		words[count++] = word;
	return count;
}

static void take(int count, char **words)
{
	for (int at = 0; at < count; at++) {
		char *word = words[at], *value = at + 1 < count ? words[at + 1] : NULL;
		if (strncmp(word, "--", 2) != 0)  /* of the kernel's command line, but not known to the kernel */
			continue;
		if (strcmp(word, "--prove") == 0) {
			prove = 1;
			continue;
		}
		if (strcmp(word, "--off") == 0) {
			off = 1;
			continue;
		}
		if (strcmp(word, "--taken") == 0) {
			taken = 1;
			continue;
		}
		if (strcmp(word, "--modules") == 0 && value)
			modules = split(value, names, MODULES);
		else if (strcmp(word, "--disk") == 0)
			disk = value;
		else if (strcmp(word, "--data") == 0)
			data = value;
		else if (strcmp(word, "--address") == 0)
			address = value;
		else if (strcmp(word, "--mask") == 0)
			mask = value;
		else if (strcmp(word, "--gateway") == 0)
			gateway = value;
		else if (strcmp(word, "--mtu") == 0)
			mtu = value;
		else if (strcmp(word, "--files") == 0 && value)
			files = value;
		else if (strcmp(word, "--terminal") == 0)
			terminal = value;
		else if (strcmp(word, "--vsock") == 0)
			vsock = value;
		else if (strcmp(word, "--name") == 0 && value)
			name = value;
		else if (strcmp(word, "--system") == 0 && value)
			split(value, system_words, WORDS);
		else if (strcmp(word, "--serial") == 0)
			serial = value;
		else if (strcmp(word, "--layer") == 0)
			layered = value;
		at++;
	}
}

/* Every byte as it is, both ways, and no more of them than the line takes. */
static int open_serial(void)
{
	struct termios raw;
	wait_for(serial);
	int port = open(serial, O_RDWR | O_NOCTTY);
	if (port < 0 || tcgetattr(port, &raw) != 0)
		fail("open the port", serial);
	cfmakeraw(&raw);
	cfsetspeed(&raw, B115200);
	raw.c_cflag |= CLOCAL | CREAD;
	if (tcsetattr(port, TCSAFLUSH, &raw) != 0)
		fail("set the port", serial);
	return port;
}

/* Which of two disks on one controller is sda is a matter of chance: the kernel probes them side by side. */
static void mount_root(void)
{
	unsigned long flags = system_words[0] ? MS_NOATIME : MS_RDONLY | MS_NOATIME;
	const char *how = system_words[0] ? NULL : "norecovery";
	if (data)
		wait_for(data);
	if (strcmp(disk, HOSTFS) == 0) {
		must_mount("none", "/root", HOSTFS, MS_RDONLY | MS_NOATIME, "");
		return;
	}
	wait_for(disk);
	must_mount(disk, "/root", "ext4", flags, how);
	if (data && access("/root/proc", F_OK) != 0) {
		const char *other = data;
		data = disk;
		disk = other;
		if (umount("/root") != 0)
			fail("unmount", "/root");
		must_mount(disk, "/root", "ext4", flags, how);
	}
}

/* What is sent before this end is open would be lost: so the host waits until it is asked. It answers with a line. */
static void ask(int port)
{
	static char line[4096];
	static char *words[ASKED];
	size_t had = 0;
	int count = 0;
	if (write(port, ASKS, sizeof ASKS - 1) != sizeof ASKS - 1)
		fail("write to the port", serial);
	do {
		if (had == sizeof line - 1 || read(port, line + had, 1) != 1)
			fail("read what it is to do from the port", serial);
	} while (line[had++] != '\n');
	line[had - 1] = 0;
	for (char *word = strtok(line, " "); word && count < ASKED; word = strtok(NULL, " "))
		words[count++] = word;
	take(count, words);
}

int main(int count, char **words)
{
	make_devices();
	take(count - 1, words + 1);
	if (prove) {
		printf("weighbridge: the guest runs\n");
		fflush(stdout);
		end_guest();
	}
	if (serial) {
		serial_port = open_serial();
		if (!name)
			ask(serial_port);
	}
	raise_files(files);
	load_modules(names, modules);
	set_up_network(address, mask, gateway, mtu);
	if (disk)
		mount_root();
	if (system_words[0]) {
		if (data)
			must_mount(data, KEPT, "ext4", MS_NOATIME, NULL);
		become_system();
		run_launcher(system_words);
		end_guest();
	}
	if (data) {
		must_mount(data, "/data", "ext4", MS_NOATIME, NULL);
		mkdir("/data/files", 0755);  /* an empty folder: beside it is what the file system keeps for itself */
	}
	char *launcher[WORDS] = {"/launcher", "--files", files, "--root", "/root", "--name", name ? name : "none"};
	char **further = launcher + 7;
	if (data) {
		*further++ = "--data";
		*further++ = "/data/files";
	}
	if (layered) {
		*further++ = "--layer";
		*further++ = layered;
	}
	if (taken)
		*further++ = "--taken";
	run_launcher(launcher);
	if (data)
		umount2("/data", MNT_DETACH);
	end_guest();
}
