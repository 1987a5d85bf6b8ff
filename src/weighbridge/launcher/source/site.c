#define _GNU_SOURCE
#include "site.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static int write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
	if (file < 0)
		return -1;
	ssize_t size = strlen(text), done = write(file, text, size);
	int error = errno;
	close(file);
	errno = error;
	return done == size ? 0 : -1;
}

/*
 * Version 1 lets a thread move alone, through the file "tasks" next to cgroup.procs. The kernel (from 5.5 on) then skips
 * the lock of all groups. That lock waits for an RCU grace period, up to 25 ms. The launcher has one thread here.
 */
int join_group(const char *file)
{
	char alone[PATH_MAX];
	const char *name = strrchr(file, '/');
	int size = name ? snprintf(alone, sizeof alone, "%.*s/tasks", (int) (name - file), file) : 0;
	if (size > 0 && size < (int) sizeof alone && write_file(alone, "0") == 0)
		return 0;
	return write_file(file, "0");
}

/* One user of the namespace, who is who we are outside (user_namespaces(7)). */
static const char *map_user(enum own_user inside, unsigned user, unsigned group)
{
	char line[64];
	if (write_file("/proc/self/setgroups", "deny") != 0 && errno != ENOENT)
		return "/proc/self/setgroups";
	snprintf(line, sizeof line, "%u %u 1", inside == SELF_INSIDE ? user : 0, user);
	if (write_file("/proc/self/uid_map", line) != 0)
		return "/proc/self/uid_map";
	snprintf(line, sizeof line, "%u %u 1", inside == SELF_INSIDE ? group : 0, group);
	return write_file("/proc/self/gid_map", line) == 0 ? NULL : "/proc/self/gid_map";
}

/* A mount's own restrictions must be asked for again where it is mounted anew: in a user namespace they are locked. */
static unsigned long kept_flags(const char *path)
{
	struct statvfs has;
	if (statvfs(path, &has) != 0)
		return 0;
	return (has.f_flag & ST_NOSUID ? MS_NOSUID : 0) | (has.f_flag & ST_NODEV ? MS_NODEV : 0) |
	       (has.f_flag & ST_NOEXEC ? MS_NOEXEC : 0) | (has.f_flag & ST_NOATIME ? MS_NOATIME : 0) |
	       (has.f_flag & ST_NODIRATIME ? MS_NODIRATIME : 0) | (has.f_flag & ST_RELATIME ? MS_RELATIME : 0);
}

/* Where the root is mounted: on itself, unless it is the whole machine's, which no mount on "/" would hide. */
static const char *place_of(const struct site *site)
{
	return strcmp(site->root, "/") == 0 ? "/mnt" : site->root;
}

/* With all that is mounted below, which a kernel before 5.12 cannot do: then only a root without such mounts is. */
static int make_read_only(const struct site *site, const char *place)
{
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
	if (mount_setattr(AT_FDCWD, place, AT_RECURSIVE, &read_only, sizeof read_only) == 0)
		return 0;
	if (strcmp(site->root, "/") == 0)
		return -1;
	return mount(NULL, place, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | kept_flags(place), NULL);
}

/* Makes a folder and those above it; what cannot be made is found out when something is mounted there. */
static void make_folders(char *path)
{
	for (char *end = path + 1; *end; end++)
		if (*end == '/') {
			*end = 0;
			mkdir(path, 0755);
			*end = '/';
		}
	mkdir(path, 0755);
}

/* As the folder that it will cover. In a user namespace most users and groups have no number and can be given nothing
 * (EINVAL): its files are then our own, and its folder is one that we may write to. */
static int make_upper(int here, int lower)
{
	struct stat as;
	if (mkdirat(here, "upper", 0755) != 0 || fstat(lower, &as) != 0)
		return -1;
	if (fchownat(here, "upper", as.st_uid, -1, 0) != 0) {
		if (errno != EINVAL)
			return -1;
		as.st_mode |= S_IRWXU;
	}
	if (fchownat(here, "upper", -1, as.st_gid, 0) != 0 && errno != EINVAL)
		return -1;
	return fchmodat(here, "upper", as.st_mode & 07777, 0);
}

/* A layer in memory over a folder, so that its site can write to it: `lower` was opened before anything hid it. Both
 * folders of the layer are on a tmpfs that the whole is then mounted over, and that no program sees. */
static int layer_over(const struct site *site, int lower, char *path)
{
	char options[128];
	make_folders(path);
	int here = mount(site->source, path, "tmpfs", 0, "mode=0755") == 0 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (here < 0 || make_upper(here, lower) != 0 || mkdirat(here, "work", 0755) != 0)
		return -1;
	int upper = openat(here, "upper", O_PATH | O_DIRECTORY | O_CLOEXEC), work = openat(here, "work", O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(options, sizeof options, "lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d%s",
		 lower, upper, work, site->own_user ? ",userxattr" : "");
	return mount(site->source, path, "overlay", 0, options);
}

/* Its own, so that nothing of a program's stays in the machine's, of which it has the size and the restrictions. */
static int mount_shared_memory(const struct site *site, const char *path)
{
	static const char machines[] = "/dev/shm";
	struct statvfs has;
	char options[128];
	if (statvfs(machines, &has) != 0)
		return -1;
	if (site->shm)
		snprintf(options, sizeof options, "mode=1777,size=%s", site->shm);
	else
		snprintf(options, sizeof options, "mode=1777,size=%llu,nr_inodes=%llu",
			 (unsigned long long)has.f_blocks * has.f_frsize, (unsigned long long)has.f_files);
	return mount(site->source, path, "tmpfs", kept_flags(machines), options);
}

static int write_new(const char *path, const char *text, mode_t mode)
{
	int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (file < 0)
		return -1;
	ssize_t size = strlen(text), done = write(file, text, size);
	close(file);
	return done == size ? 0 : -1;
}

static int place_rules(const struct site *site, const char *place)
{
	char path[4096];
	snprintf(path, sizeof path, "%s" PLACED_RULES, place);
	if (site->rules > 0 && mkdir(path, 0755) != 0)
		return -1;
	for (int number = 0; number < site->rules; number++) {
		snprintf(path, sizeof path, "%s" PLACED_RULES "/%d", place, number);
		if (write_new(path, "", 0644) != 0)
			return -1;
	}
	return 0;
}

/* Puts the launcher (`program`, which was opened before anything hid it), the settings of a wrapper and the files of its
 * additional rules into /run, and makes the folder where it is tried what the wrapper denies. */
static const char *place_files(const struct site *site, const char *place, int program)
{
	char path[4096], from[64];
	snprintf(path, sizeof path, "%s" PLACED_SETTINGS, place);
	if (site->settings && write_new(path, site->settings, 0644) != 0)
		return PLACED_SETTINGS;
	if (place_rules(site, place) != 0)
		return PLACED_RULES;
	snprintf(path, sizeof path, "%s%s", place, site->outside ? site->outside : "");
	if (site->outside && (mkdir(path, 0755) != 0 || mount(site->source, path, "tmpfs", 0, "mode=1777") != 0))
		return site->outside;
	snprintf(path, sizeof path, "%s" PLACED_LAUNCHER, place);
	snprintf(from, sizeof from, "/proc/self/fd/%d", program);
	if (write_new(path, "", 0755) != 0 || mount(from, path, NULL, MS_BIND, NULL) != 0 ||
	    mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | kept_flags(path), NULL) != 0)
		return PLACED_LAUNCHER;
	return NULL;
}

static const char *mount_all(const struct site *site)
{
	const char *place = site->root ? place_of(site) : "";
	static char path[4096];
	static const char *const from_host[] = {"/proc", "/sys", "/dev"}, *const in_memory[] = {"/tmp", "/run"};
	const char *inside = path + strlen(place);  /* what the site calls it: what is told where it fails */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return "/";
	int lower = -1, program = -1;
	if (site->launcher && (program = open(site->launcher, O_PATH | O_CLOEXEC)) < 0)
		return site->launcher;
	snprintf(path, sizeof path, "%s%s", !site->root || strcmp(site->root, "/") == 0 ? "" : site->root, site->layered ? site->layered : "");
	if (site->layered && (lower = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		return site->layered;
	if (!site->root)
		return layer_over(site, lower, path) == 0 ? NULL : site->layered;
	if (mount(site->root, place, NULL, MS_BIND | MS_REC, NULL) != 0 || make_read_only(site, place) != 0)
		return site->root;
	for (size_t each = 0; each < sizeof from_host / sizeof *from_host; each++) {
		snprintf(path, sizeof path, "%s%s", place, from_host[each]);
		if (mount(from_host[each], path, NULL, MS_BIND | MS_REC, NULL) != 0)
			return inside;
	}
	for (size_t each = 0; each < sizeof in_memory / sizeof *in_memory; each++) {
		snprintf(path, sizeof path, "%s%s", place, in_memory[each]);
		if (mount(site->source, path, "tmpfs", 0, "mode=1777") != 0)
			return inside;
	}
	snprintf(path, sizeof path, "%s/dev/shm", place);
	if (mount_shared_memory(site, path) != 0 && errno != ENOENT)
		return inside;
	snprintf(path, sizeof path, "%s/srv", place);
	if (site->data && mount(site->data, path, NULL, MS_BIND, NULL) != 0)
		return inside;
	snprintf(path, sizeof path, "%s/etc/hosts", place);
	if (site->hosts && mount(site->hosts, path, NULL, MS_BIND, NULL) != 0)
		return inside;
	snprintf(path, sizeof path, "%s%s", place, site->layered ? site->layered : "");
	if (site->layered && layer_over(site, lower, path) != 0)
		return site->layered;
	return site->launcher ? place_files(site, place, program) : NULL;
}

/* Of /proc only what is about this process, which stays the same one: /proc/1/root leads back to what can be written to.
 * The working folder is then still the /proc that is hidden, and names what is mounted from it. */
static int hide_processes(const struct site *site)
{
	if (chdir("/proc") != 0 || mount(site->source, "/proc", "tmpfs", 0, "mode=0755") != 0 || mkdir("/proc/self", 0755) != 0 ||
	    mount("self", "/proc/self", NULL, MS_BIND, NULL) != 0 || symlink("self/mounts", "/proc/mounts") != 0 ||
	    write_new("/proc/cpuinfo", "", 0644) != 0 || mount("cpuinfo", "/proc/cpuinfo", NULL, MS_BIND, NULL) != 0)
		return -1;
	return chdir("/");
}

/* Everything stays where it is, and is read-only with all that is mounted (Linux 5.12), also what /sys sets. */
static const char *seal(const struct site *site)
{
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY}, writable = {.attr_clr = MOUNT_ATTR_RDONLY};
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return "/";
	if (site->data && mount(site->data, site->data, NULL, MS_BIND, NULL) != 0)
		return site->data;
	if (hide_processes(site) != 0)
		return "/proc";
	if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &read_only, sizeof read_only) != 0)
		return "/";
	if (site->data && mount_setattr(AT_FDCWD, site->data, 0, &writable, sizeof writable) != 0)
		return site->data;
	return mount_shared_memory(site, "/dev/shm") == 0 ? NULL : "/dev/shm";
}

/* The loopback interface of a network of its own, which a user's programs have not the rights for. */
static void raise_loopback(void)
{
	struct ifreq about = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING};
	int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (any >= 0) {
		ioctl(any, SIOCSIFFLAGS, &about);
		close(any);
	}
}

static const char RESOLVER[] = "/etc/resolv.conf";

/* Where the machine's resolv.conf is a link into /run (systemd-resolved), of which the site has one of its own: puts there
 * what it holds, as an engine does for its containers. Where that cannot be the link stays as it is. */
static void keep_resolver(int was)
{
	char target[4096], piece[4096];
	ssize_t size = readlink(RESOLVER, target, sizeof target - 1);
	if (was < 0 || size <= 0 || access(RESOLVER, F_OK) == 0 || chdir("/etc") != 0)
		return;
	target[size] = 0;
	char *name = strrchr(target, '/');
	if (name && name != target) {
		*name = 0;
		make_folders(target);
	}
	int now = open(RESOLVER, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	for (ssize_t got; now >= 0 && (got = read(was, piece, sizeof piece)) > 0;)
		if (write(now, piece, got) != got)
			break;
	if (now >= 0)
		close(now);
}

/* A process in a chroot cannot make a user namespace, which many wrappers do. For them the root folder is the root of
 * the mount namespace, too: pivot_root(2), under "pivot_root(".", ".")". */
static int become_root(const struct site *site)
{
	if (!site->launcher)
		return chroot(place_of(site)) == 0 && chdir("/") == 0 ? 0 : -1;
	if (chdir(place_of(site)) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0)
		return -1;
	return chdir("/");
}

const char *enter(const struct site *site)
{
	unsigned user = geteuid(), group = getegid();
	int namespaces = (site->own_user ? CLONE_NEWUSER : 0) | (site->own_network ? CLONE_NEWNET : 0) |
			 (site->root ? CLONE_NEWNS | CLONE_NEWIPC : site->layered || site->sealed ? CLONE_NEWNS : 0);
	if (namespaces && unshare(namespaces) != 0)
		return "a namespace";
	if (site->own_network)
		raise_loopback();
	const char *failed = site->own_user ? map_user(site->own_user, user, group) : NULL;
	int resolver = site->root && strcmp(site->root, "/") == 0 ? open(RESOLVER, O_RDONLY | O_CLOEXEC) : -1;
	if (failed == NULL && (site->root || site->layered))
		failed = mount_all(site);
	if (failed == NULL && site->sealed)
		failed = seal(site);
	if (failed == NULL && site->root && become_root(site) != 0)
		failed = site->root;
	if (failed == NULL && site->root) {
		keep_resolver(resolver);
		failed = chdir("/") == 0 ? NULL : site->root;
	}
	if (resolver >= 0)
		close(resolver);
	return failed;
}
