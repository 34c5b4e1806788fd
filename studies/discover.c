#include "studies/discover.h"

#include <math.h>
#include <string.h>

#include "network/discover/quality.h"

static const struct discover_setting settings[] = {
	{"region", "section 5.5: machines of two datacenters", 2, 7, 15, 683, 20, 64, REGION_SPREAD},
	{"datacenter", "section 5.5: machines of one datacenter", 1, 2, 8, 40, 20, 64, REGION_SPREAD},
	{"job", "figures 8 and 9: machines that fill racks unequally", 1, 2, 4, 40, 20, 64, REGION_PACKED},
	{"hall", "the same, eight times as large", 1, 4, 32, 320, 20, 512, REGION_PACKED},
	{"corner", "few machines in racks as the lab has them: all groupings can be tried", 1, 1, 1, 3, 4, 8,
	 REGION_SPREAD},
};

const struct discover_setting *discover_setting_at(size_t index)
{
	return index < sizeof(settings) / sizeof(settings[0]) ? &settings[index] : NULL;
}

const struct discover_setting *discover_setting_find(const char *name)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (strcmp(settings[i].name, name) == 0)
			return &settings[i];
	}
	return NULL;
}

struct region_spec discover_spec(const struct discover_setting *setting)
{
	struct region_spec spec = region_defaults();

	spec.count[REGION_DATACENTER] = setting->datacenters;
	spec.count[REGION_CLUSTER] = setting->clusters;
	spec.count[REGION_ROW] = setting->rows;
	spec.count[REGION_RACK] = setting->racks;
	spec.count[REGION_HOST] = setting->rack_hosts;
	spec.machines = setting->machines;
	spec.allocation = setting->allocation;
	return spec;
}

uint32_t discover_root(uint32_t machines)
{
	uint32_t root = (uint32_t)lround(sqrt(machines));

	return root > 0 ? root : 1;
}

enum esp_status discover_open(struct discover_case *made, const struct region_spec *spec, uint64_t place, uint64_t run,
                              struct error *err)
{
	*made = (struct discover_case){0};
	enum esp_status status = region_init(&made->region, spec, place, err);

	if (status == ESP_OK)
		status = crowd_init(&made->crowd, &made->region, run, err);
	if (status != ESP_OK)
		discover_close(made);
	return status;
}

void discover_close(struct discover_case *made)
{
	crowd_fini(&made->crowd);
	region_fini(&made->region);
}

static enum esp_status raw_of(const struct region_spec *spec, enum reading_noise noise, double level, uint64_t seed,
                              double *out_paia, struct error *err)
{
	struct discover_case made;
	struct matrix read = {0};
	enum esp_status status = discover_open(&made, spec, seed, seed, err);

	if (status != ESP_OK)
		return status;
	status = reading_latency(&made.region, &made.crowd, noise, level, seed, &read, err);
	if (status == ESP_OK)
		*out_paia = discover_quality_paia(&read, &made.region.truth, NULL);
	matrix_fini(&read);
	discover_close(&made);
	return status;
}

enum esp_status discover_raw(const struct region_spec *spec, enum reading_noise noise, double level, uint64_t seed,
                             uint32_t count, double *out_paia, struct error *err)
{
	double sum = 0, one = 0;

	for (uint32_t i = 0; i < count; i++) {
		enum esp_status status = raw_of(spec, noise, level, seed + i, &one, err);

		if (status != ESP_OK)
			return status;
		sum += one;
	}
	*out_paia = sum / count;
	return ESP_OK;
}

enum esp_status discover_calibrate(const struct region_spec *spec, enum reading_noise noise, double wanted,
                                   uint64_t seed, uint32_t count, double *out_level, double *out_paia,
                                   struct error *err)
{
	double low = 0, high = noise == READING_QUIET ? 0 : DISCOVER_LEVEL_MOST, level = high, paia = 0;
	enum esp_status status = discover_raw(spec, noise, level, seed, count, &paia, err);

	/* Readings get worse as noise grows; thirty bisections are enough. */
	bool can_reach = paia < wanted && high > 0;
	for (int i = 0; can_reach && i < 30 && status == ESP_OK; i++) {
		level = (low + high) / 2;
		status = discover_raw(spec, noise, level, seed, count, &paia, err);
		if (paia < wanted)
			high = level;
		else
			low = level;
	}
	*out_level = level;
	*out_paia = paia;
	return status;
}
