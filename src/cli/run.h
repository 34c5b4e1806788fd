/*
 * run.h - espalier run, for commands that start their ranks by it.
 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include "tools/launcher/launcher_request.h"

/*
 * espalier run, with argv[0] = "run". name: the command that was typed, in whose name all is said; watch: is told how
 * it ended in place of the person, NULL: none. Returns the exit status.
 */
int run_as(const char *name, int argc, char **argv, const struct run_watch *watch);

/* The hosts of --hosts, or else of the file of --hostfile. ESP_EINVAL, ESP_ELIMIT, ESP_ENOMEM, ESP_EIO. */
ESP_CHECKED enum esp_status run_hosts_given(struct run_hosts *hosts, const char *list, const char *path,
                                            struct error *err);

#endif
