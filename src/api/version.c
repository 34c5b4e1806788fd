#include "espalier/espalier.h"

const char *esp_version(void)
{
	return ESP_VERSION_STRING;
}
