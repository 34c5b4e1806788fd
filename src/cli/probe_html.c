#include "cli/probe.h"

enum esp_status probe_print_html(const struct probe_outcome *outcome, FILE *file, struct error *err)
{
	(void)outcome; (void)file;
	return error_set(err, ESP_EUNSUPPORTED, "not yet");
}
