/* What makes a native site of a host: control groups, namespaces, the root folder. */
#ifndef SITE_H
#define SITE_H

#define PLACED_LAUNCHER "/run/weighbridge-launcher"
#define PLACED_SETTINGS "/run/weighbridge-settings"
#define PLACED_RULES "/run/weighbridge-rules"

struct site {
	const char *root;     /* becomes /, read-only; NULL: all stays as it is */
	const char *data;     /* becomes /srv; if sealed, a file that can be written to */
	const char *layered;  /* a folder (of the root, if any) that can be written to, in memory; NULL: none */
	const char *shm;      /* bytes that its /dev/shm holds; NULL: as many as the machine's */
	const char *hosts;    /* a file that stands for /etc/hosts; NULL: the root's own */
	const char *source;   /* what the folders in memory are named after */
	const char *launcher; /* our own file, if another program becomes the first process: it finds us at PLACED_LAUNCHER */
	const char *settings; /* the contents of PLACED_SETTINGS; NULL: there is no such file */
	const char *outside;  /* one more folder in memory, of a name that the other program does not know; NULL: none */
	int rules;            /* how many empty files are in PLACED_RULES, with the names 0, 1, ...; 0: there is no such folder */
	int own_network;
	int sealed;           /* without a root: all stays where it is and is read-only, except the data and a /dev/shm of its own */
	enum own_user { NO_USER_NAMESPACE, ROOT_INSIDE, SELF_INSIDE } own_user;  /* who we are in one of our own */
};

/* Joins a control group by its file. Gives 0, or -1 with errno. */
int join_group(const char *file);

/* Gives NULL, or what could not be done, with errno. */
const char *enter(const struct site *site);

#endif
