/*
 * money.h - the cost of a worker with its share of network and hub: the cost model of the Parameter Hub paper, section
 * 4.9.
 *
 * A worker has GPUs, a NIC, a port and a cable at its top-of-rack switch, and a share of the network above, which is
 * smaller the more the rack's uplinks are oversubscribed. The baseline is a fast network with sharded servers on the
 * workers; it is compared with a slow network and a hub per rack, whose price is shared by the rack's workers.
 *
 * Two readings of the formulas. As printed, a NIC is counted twice, once beside A and once in it, and the hub's price
 * starts from a worker's (W); corrected, each is counted once and the hub starts from its own (H). The paper does not
 * print throughputs, nor the prices of the V100 and of the cheap CPU's worker: missing values are read back from the
 * first row of its table 5, and marked.
 *
 * Pure.
 */
#ifndef SIM_MONEY_H
#define SIM_MONEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MONEY_SCENARIOS_MAX 8u
#define MONEY_RATIOS_MAX 8u
#define MONEY_NAME 32

/* A kind of network: what a host pays at its end, and how many hosts share a port of the switch. */
struct money_network {
	double nic, cable;
	double hosts_per_port; /* 4: a breakout cable */
};

/* One set of prices for the parts that compute; 0: unknown. */
struct money_scenario {
	char name[MONEY_NAME];
	double gpu;
	double worker; /* without GPUs and NIC */
};

struct money_prices {
	double gpus; /* of a worker */
	struct money_network fast, slow;
	double hub_node, hub_ports, hub_nic_port;
	double switch_price, switch_ports;
	/* For advice (sim/advice.h), which the paper has nothing about: assumed unless given. */
	double server_node; /* a parameter server, without its NIC; a hub is hub_node */
	double multicast, aggregation; /* of a switch: what it costs more to have that */
	bool server_given, hub_given, multicast_given, aggregation_given;
	double ratios[MONEY_RATIOS_MAX]; /* oversubscription of the slow network: 2 is 2:1 */
	uint32_t ratio_count;
	double throughput;     /* of a baseline worker, samples per second; 0: unknown */
	double hub_throughput; /* of a worker with the hub, relative to it; 0: unknown */
	struct money_scenario scenarios[MONEY_SCENARIOS_MAX]; /* the first one's prices are always known */
	uint32_t scenario_count;
	bool from_paper; /* nothing was changed: table 5 can be compared with */
};

enum money_reading { MONEY_CORRECTED, MONEY_PRINTED };

#define MONEY_ROWS_MAX (1u + MONEY_RATIOS_MAX)

/* A deployment; the first one is the baseline. */
struct money_row {
	double ratio;            /* of the oversubscription */
	uint32_t rack_workers;   /* of a switch */
	double network;          /* A: a worker's share */
	double hub;              /* a worker's share; 0 for the baseline */
	double worker[MONEY_SCENARIOS_MAX];   /* all of it */
	double relative[MONEY_SCENARIOS_MAX]; /* to the baseline's worker */
	double per_1000[MONEY_SCENARIOS_MAX]; /* samples per second for 1000 of the currency; 0: unknown */
};

/* Values that were not given, and are therefore read back from table 5, or assumed. */
struct money_assumptions {
	bool throughput, hub_throughput;
	bool gpu[MONEY_SCENARIOS_MAX], worker[MONEY_SCENARIOS_MAX];
};

struct money {
	struct money_prices prices; /* with what was filled in */
	struct money_assumptions assumed;
	struct money_row rows[MONEY_ROWS_MAX];
	uint32_t row_count;
};

/* The paper's. */
void sim_money_paper_prices(struct money_prices *out);

/*
 * A JSON object; whatever it leaves out is the paper's. Scenarios that it names replace the paper's. file names it in
 * messages. ESP_EPARSE.
 */
ESP_CHECKED enum esp_status sim_money_parse(struct money_prices *out, const char *file, const char *text, size_t size,
                                            struct error *err);

/* ESP_EINVAL: a hub does not fit into a rack, or something costs nothing at all. */
ESP_CHECKED enum esp_status sim_money_compute(struct money *out, const struct money_prices *prices,
                                              enum money_reading reading, struct error *err);

/* Table 5: throughput per $1000 in row and scenario of the paper's prices; 0: there is none. */
double sim_money_table5(uint32_t row, uint32_t scenario);
/* The cost of a worker that table 5 implies, relative to the baseline's, in the first scenario. */
double sim_money_implied(uint32_t row);

/* ---- table 2: bandwidth that a parameter server needs so that communication hides behind computing ---- */

enum money_placement {
	MONEY_CC,  /* one server, on a worker's host       */
	MONEY_CS,  /* sharded over the workers' hosts      */
	MONEY_NCC, /* one server on a host of its own      */
	MONEY_NCS, /* sharded over as many hosts of their own as there are workers */
	MONEY_PLACEMENTS,
};
extern const char *const money_placement_names[];

/*
 * Bits per second through the busiest server's interfaces, both directions added, for a model of so many bytes that
 * computes so long.
 */
double sim_money_bound(enum money_placement placement, double bytes, double seconds, uint32_t workers);

/* Rows of table 2 with the model of table 3 behind each. NULL: no more. */
struct money_bound_row {
	const char *name;
	double bytes, seconds;
	double paper[MONEY_PLACEMENTS]; /* Gbit/s */
};
const struct money_bound_row *sim_money_table2(size_t index);

#endif
