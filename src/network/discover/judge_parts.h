/*
 * judge_parts.h - steps from a survey to groups (judge_groups.h). Pure. Private to src/network/discover.
 */
#ifndef NETWORK_DISCOVER_JUDGE_PARTS_H
#define NETWORK_DISCOVER_JUDGE_PARTS_H

#include "network/discover/judge_groups.h"

/* A quantile: `share` of all values are smaller. Reorders the values; NAN: there are none. */
double discover_quantile(double *values, uint32_t count, double share);

/*
 * Prepares measured distances for grouping: clips outliers, and moves hosts that are far from all others,
 * because of their own queues, nearer. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_clip(const struct matrix *matrix, struct matrix *out, struct error *err);

/* ---- candidates by the evidence (judge_shortlist.c) ---- */

const struct candidate *discover_chosen_of(const struct verdict_kind *kind);
struct candidates_options discover_options_of(const struct verdict_wish *wish, enum survey_kind which,
                                              const struct verdict_kind *kind);
/* Of bandwidths, the candidate that is taken if enough of the evidence is for one without hosts that are alone. */
uint32_t discover_prefer_company(const struct verdict_kind *kind);
/* Sets kind->choice to the candidate with the fastest plan, of those with about the same evidence. ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_choose_by_cost(const struct survey *survey, const struct verdict_wish *wish,
                                                    enum survey_kind which, struct verdict_kind *kind,
                                                    struct error *err);

/* ---- conditions of certainty ---- */

/* Whether each group is separated from each other, and is not two groups itself. ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_are_apart(const struct matrix *matrix, const struct grouping *grouping, bool *out,
                                               struct error *err);
/*
 * Whether no host is as near to some hosts of another group as hosts of one group are to each other. For
 * latencies, which disturbance never shortens. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_hosts_are_apart(const struct matrix *matrix, const struct grouping *grouping,
                                                     bool *out, struct error *err);
/* True if a host is alone in its group. By bandwidth that cannot be told from one with a slower link. */
bool discover_has_lonely(const struct grouping *grouping);

/* How clearly each host is nearer to its own group than to the next one, beyond the noise. ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_natural_word(const struct matrix *matrix, const struct grouping *grouping,
                                                  enum verdict_word *out, struct error *err);

/* ---- a number of groups that is given ---- */

/*
 * The groups with the least mean distance inside, from several sources, each polished. elasticity 0: the balance with
 * the fastest plan. kmeans: the groups of k-means, or NULL. The caller owns out->grouping. ESP_EINVAL, ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_told(const struct matrix *matrix, uint32_t groups, double elasticity,
                                          uint64_t seed, const struct grouping *kmeans, struct natural *out,
                                          struct error *err);

/* Fills what the groups look like: within, across, belonging, doubtful. ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_verdict_measure(const struct survey *survey, struct verdict *verdict,
                                                     struct error *err);

#endif
