/*
 * conf.h - the settings: one table, four places where a value can come from.
 *
 * A value comes from, weakest first: the default in the table; the file that
 * ESP_CONF_FILE names (KEY=VALUE lines); the environment (ESP_CHUNK_BYTES); the command
 * line. A stronger place wins, whichever is read first, and each value remembers its
 * place. A bad value is complained about and changes nothing; where a job would then run
 * with less safety than it was meant to have, or elsewhere, it is refused (`strict`).
 *
 * Read once when something is opened, then passed on as const struct conf *.
 */
#ifndef BASE_CONF_H
#define BASE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CONF_COUNT 36            /* settings in the table */
#define CONF_LINE_MAX 4096      /* bytes in a line of a file */
#define CONF_FILE_MAX (1 << 20) /* bytes in a file */
#define CONF_TEXT_MAX 240       /* bytes of a text, with the NUL */

/* Weakest first. */
enum conf_origin {
	CONF_DEFAULT,
	CONF_FILE,
	CONF_ENVIRONMENT,
	CONF_COMMAND_LINE,
};

enum conf_transport {
	CONF_TRANSPORT_AUTO, /* shared memory where ranks share a host, sockets elsewhere */
	CONF_TRANSPORT_SHM,  /* the same, but a job that spans hosts is refused           */
	CONF_TRANSPORT_TCP,  /* sockets everywhere                                        */
};

enum conf_family {
	CONF_FAMILY_ANY,
	CONF_FAMILY_IPV4,
	CONF_FAMILY_IPV6,
};

enum conf_autotune {
	CONF_AUTOTUNE_AUTO, /* where a topology has groups, and plans use them */
	CONF_AUTOTUNE_ON,   /* wherever plans have two levels                  */
	CONF_AUTOTUNE_OFF,
};

/* In the order of enum esp_numerics, from ESP_NUMERICS_FLOAT on. */
enum conf_numerics {
	CONF_NUMERICS_FLOAT,
	CONF_NUMERICS_FIXED,
	CONF_NUMERICS_FIXED16,
};

/* Of whole numbers, both ends included; both 0: left to us. */
struct conf_range {
	uint32_t first, last;
};

#define CONF_INTERFACES_MOST 191u /* bytes of a list of interfaces: eight long names and more */
#define CONF_SWITCH_MOST 47u      /* bytes of the address of a switch */
#define CONF_WEIGHTS_MOST 47u     /* 1000000:100000:... */

/* The meaning of each stands in the table of conf.c, and `espalier conf` prints it. */
struct conf {
	uint64_t chunk_bytes;
	uint32_t credits;
	uint32_t active_chunks;
	uint32_t lanes;
	uint32_t transport;          /* enum conf_transport */
	uint64_t small_bytes;
	uint64_t small_shm_bytes;
	uint64_t buffer_bytes;
	uint32_t deadline_seconds;
	uint32_t liveness_ms;
	bool quorum;
	uint32_t linger_seconds;
	uint32_t log;                /* enum log_level */
	uint32_t join_seconds;
	bool insecure;
	char interfaces[CONF_INTERFACES_MOST + 1];
	uint32_t family;             /* enum conf_family */
	struct conf_range port;
	uint32_t segment_bytes;
	bool resume;
	bool peer_stores;
	bool core_affinity;
	uint32_t rails;
	char rail_weights[CONF_WEIGHTS_MOST + 1];
	char through[CONF_SWITCH_MOST + 1];
	uint32_t numerics;           /* enum conf_numerics */
	uint32_t autotune;           /* enum conf_autotune */
	uint32_t autotune_ms;
	char log_subsystems[CONF_TEXT_MAX];
	char log_file[CONF_TEXT_MAX];
	char dump_dir[CONF_TEXT_MAX];
	bool status;
	char metrics[CONF_TEXT_MAX];
	char topology[CONF_TEXT_MAX];
	char trace[CONF_TEXT_MAX];
	bool trace_detail;
	uint8_t origins[CONF_COUNT]; /* enum conf_origin, by index in the table */
};

enum conf_type {
	CONF_BYTES,  /* uint64_t: 4096, 64K, 2M */
	CONF_UINT,   /* uint32_t                */
	CONF_BOOL,   /* bool: 0/1, no/yes, false/true, off/on */
	CONF_CHOICE, /* uint32_t: index into choices */
	CONF_RANGE,  /* struct conf_range: 0, 7000, 7000-7015 */
	CONF_TEXT,   /* char[max + 1]: printable, whatever its user makes of it */
};

struct conf_setting {
	const char *name; /* "chunk_bytes": ESP_CHUNK_BYTES in the environment */
	enum conf_type type;
	const char *fallback;       /* the default, as text */
	/* CONF_BYTES, CONF_UINT, CONF_RANGE; 0 as well, if it is the default: left to us. CONF_TEXT: max bytes */
	uint64_t min, max;
	const char *const *choices; /* CONF_CHOICE; ends with NULL */
	const char *help;
	size_t offset; /* in struct conf */
	bool agreed;   /* must have the same value on all ranks of a job */
	/*
	 * no rank goes on with another value than was meant: which nodes may take part, where, and which a job does without
	 */
	bool strict;
	const char *old_name; /* of the version before; works in this one, with a warning. NULL: none */
};

/*
 * Told about each bad value that is passed over: complaint->text names the place, the value and what was expected. May
 * be NULL.
 */
typedef void conf_complain_fn(void *context, const struct error *complaint);

/* The defaults and nothing else: for tests and simulation. */
void conf_init(struct conf *conf);

/*
 * The defaults, the file and the environment; an empty variable counts as not set, but for texts. Reads the
 * environment: call it before threads change that. ESP_EINVAL, ESP_EPARSE: the first bad value of a strict setting, in
 * *err, and not told to complain; ESP_EIO and others: the file cannot be read. *conf then has everything else.
 */
ESP_CHECKED enum esp_status conf_load(struct conf *conf, conf_complain_fn *complain, void *context, struct error *err);

/*
 * Complains about variables of the environment that begin with ESP_ and that no code reads: misspelt, most likely.
 * Apart from conf_load(), as one rank of a job is enough to say it.
 */
void conf_check_environment(conf_complain_fn *complain, void *context);

/* The same of a list of NAME=VALUE that ends with NULL. Pure. */
void conf_check_names(char *const *words, conf_complain_fn *complain, void *context);

/* A variable of the environment, NULL if it is not set: for those that are given such a function to ask. */
const char *conf_environment(void *unused, const char *name);

/* The value of a variable, NULL if it is not set: conf_environment(), or a table in tests. */
typedef const char *conf_lookup_fn(void *context, const char *name);

/*
 * One value from one place. ESP_EINVAL with the reason in *err if the name is unknown or
 * the value is bad. A value of a stronger place is kept, and that is no error. The text
 * need not end in NUL. Names match in any case, with or without ESP_ in front.
 */
ESP_CHECKED enum esp_status conf_set(struct conf *conf, const char *name, size_t name_length, const char *value,
                                     size_t value_length, enum conf_origin origin, struct error *err);

/* True for a name that a setting had in the version before: out->text then says what it is called now. */
bool conf_is_renamed(const char *name, size_t length, struct error *out);

/* Is it a setting whose bad values are refused? */
bool conf_is_strict(const char *name, size_t length);

/*
 * The lines of a file that is already in memory. file_name is for complaints; a pure function otherwise. ESP_EPARSE: a
 * strict setting has a bad value, the first of them in *err.
 */
ESP_CHECKED enum esp_status conf_decode(struct conf *conf, const char *text, size_t size, const char *file_name,
                                        conf_complain_fn *complain, void *context, struct error *err);

/*
 * Reads a regular file (links are followed) of at most CONF_FILE_MAX bytes: ESP_EIO, ESP_ELIMIT, ESP_ENOMEM, and as
 * conf_decode().
 */
ESP_CHECKED enum esp_status conf_read_file(struct conf *conf, const char *path, conf_complain_fn *complain,
                                           void *context, struct error *err);

/* For listings: the table, and a setting's value as text that conf_set() reads back. */
const struct conf_setting *conf_setting_at(size_t index); /* NULL from CONF_COUNT on */
#define CONF_VALUE_TEXT 256
const char *conf_value_text(const struct conf *conf, size_t index, char text[CONF_VALUE_TEXT]);
const char *conf_origin_name(enum conf_origin origin);

/*
 * The settings that all ranks must have alike, in the order of the table: "chunk_bytes=64K credits=16". Returns text.
 */
#define CONF_AGREED_TEXT 512
const char *conf_agreed_text(const struct conf *conf, char text[CONF_AGREED_TEXT]);

/* The variable that a setting is read from: "ESP_CHUNK_BYTES". Returns text. */
#define CONF_VARIABLE_TEXT 64
const char *conf_variable_name(size_t index, char text[CONF_VARIABLE_TEXT]);
/* That of the version before, if the setting has been renamed since; else NULL, and text is "". */
const char *conf_old_variable_name(size_t index, char text[CONF_VARIABLE_TEXT]);

#endif
