/*
 * trial.h - one mechanism on one cluster: the topology is made if none is given, and the training is run on it.
 */
#ifndef SIM_TRIAL_H
#define SIM_TRIAL_H

#include "sim/train.h"

struct trial {
	struct train_config train; /* its topology: NULL, or one of the caller's */
	/*
	 * Without a topology: a switch with all hosts, or racks below a core, with the workers spread over them in order.
	 * Servers stand in the last.
	 */
	double gbps;          /* of a host's link                   */
	double server_gbps;   /* of a server's or hub's; 0: as that */
	uint32_t racks;       /* 0: 1                               */
	double oversubscribe; /* of the racks; 0: 1                 */
	double delay_s;       /* of a host's link, one way          */
};

/* ESP_EINVAL: a rate is none, more racks than workers, or what sim_train_run() says; ESP_ENOMEM. */
ESP_CHECKED enum esp_status sim_trial_run(const struct trial *trial, struct train_result *out, struct error *err);

#endif
