/*
 * confirm.h - measured distances without single outliers and without gaps. Pure.
 *
 * A disturbed pair is far, and neither end's neighbours confirm it: they are near to the other end. Such a distance,
 * and one that is not known, is replaced by what the neighbours of both ends measured. No distance is cut off because
 * it is long: what is far for the neighbours as well stays as it is.
 */
#ifndef NETWORK_DISCOVER_CONFIRM_H
#define NETWORK_DISCOVER_CONFIRM_H

#include "network/topo/matrix.h"

/* *out has no unknown distances. ESP_EINVAL: nothing at all is known; ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_confirm(const struct matrix *matrix, struct matrix *out, struct error *err);

#endif
