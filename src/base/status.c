#include "base/status.h"

#include <stddef.h>

struct status_row {
	enum esp_status status;
	const char *name;
	const char *text;
};

static const struct status_row rows[] = {
	{ESP_OK, "ESP_OK", "success"},
	{ESP_PENDING, "ESP_PENDING", "not finished yet"},
	{ESP_EINVAL, "ESP_EINVAL", "an argument is out of range or contradicts another"},
	{ESP_EUNSUPPORTED, "ESP_EUNSUPPORTED", "this build or this kind of memory cannot do it"},
	{ESP_ESTATE, "ESP_ESTATE", "the call came at the wrong time"},
	{ESP_EFORKED, "ESP_EFORKED", "used in a child process after fork"},
	{ESP_ENOMEM, "ESP_ENOMEM", "out of memory"},
	{ESP_ELIMIT, "ESP_ELIMIT", "a limit of the settings or of the system is reached"},
	{ESP_EIO, "ESP_EIO", "a file or device failed"},
	{ESP_EPARSE, "ESP_EPARSE", "text or bytes are malformed"},
	{ESP_EPLAN, "ESP_EPLAN", "a plan does not compute what it promises"},
	{ESP_ELINK, "ESP_ELINK", "a connection broke or cannot be made"},
	{ESP_ECORRUPT, "ESP_ECORRUPT", "bytes arrived that were not sent"},
	{ESP_EPEER, "ESP_EPEER", "a peer died or was excluded"},
	{ESP_ETIMEOUT, "ESP_ETIMEOUT", "a deadline passed"},
	{ESP_EMISMATCH, "ESP_EMISMATCH", "ranks made calls that do not fit together"},
	{ESP_EEXCLUDED, "ESP_EEXCLUDED", "the others go on without this rank"},
	{ESP_EQUORUM, "ESP_EQUORUM", "too few ranks are left to go on"},
	{ESP_EJOB, "ESP_EJOB", "the job or group has failed"},
	{ESP_EABORTED, "ESP_EABORTED", "ended by the caller"},
};

static const struct status_row *row_of(enum esp_status status)
{
	static const struct status_row unknown = {ESP_OK, "ESP_UNKNOWN", "not a status code"};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].status == status)
			return &rows[i];
	return &unknown;
}

const char *status_name(enum esp_status status)
{
	return row_of(status)->name;
}

const char *status_text(enum esp_status status)
{
	return row_of(status)->text;
}
