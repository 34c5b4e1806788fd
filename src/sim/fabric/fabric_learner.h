/*
 * fabric_learner.h - real stochastic gradient descent for the modelled job: a task on made-up data that is learnt in
 * milliseconds, by asynchronous updates in the order and with the delays of a run, or by synchronous steps.
 *
 *     logistic  logistic regression of 30 features, 3,000 examples
 *     network   32 inputs, 256 hidden units, 10 classes: 11,018 parameters, 2,000 examples that another network labels
 *
 * A batch is 32 examples, an update is -lr times its gradient. Pure.
 */
#ifndef SIM_FABRIC_LEARNER_H
#define SIM_FABRIC_LEARNER_H

#include "sim/fabric/fabric_world.h"

enum fabric_task { FABRIC_LOGISTIC, FABRIC_NETWORK };
extern const char *const fabric_task_names[]; /* "logistic", "network", NULL */

struct fabric_learner_run;

/* lr: of a single update. ESP_ENOMEM. */
ESP_CHECKED enum esp_status fabric_learner_open(enum fabric_task task, uint32_t workers, double lr, uint64_t seed,
                                                struct fabric_learner_run **out, struct error *err);
void fabric_learner_close(struct fabric_learner_run *learner); /* NULL is fine */
/* For fabric_config.learner; borrowed. The run ends when the target is reached. */
const struct fabric_learner *fabric_learner_hooks(struct fabric_learner_run *learner);
/* Updates until the loss was at the target, in steps of as many as there are workers; 0: it was not reached. */
uint64_t fabric_learner_reached(const struct fabric_learner_run *learner);
uint32_t fabric_learner_parameters(const struct fabric_learner_run *learner);
double fabric_learner_loss(struct fabric_learner_run *learner);
/*
 * Synchronous steps, each with the sum of all workers' gradients, until the target; returns the updates (steps times
 * workers), or 0: not within so many.
 */
uint64_t fabric_learner_synchronous(struct fabric_learner_run *learner, uint64_t updates_most);

#endif
