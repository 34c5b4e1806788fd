#include "sim/workload/model.h"

#include <math.h>

#include "base/check.h"
#include "sim/workload/accelerator.h"

/* ---- shipped models ---- */

static void load(struct model *model, const char *name, const struct model_options *options)
{
	char path[512];
	struct error err = {0};
	snprintf(path, sizeof path, "%s/%s.json", MODELS_FOLDER, name);
	CHECK_MSG(workload_model_load(model, path, options, &err) == ESP_OK, "%s", err.text);
	CHECK_STR(model->name, name);
}

/* Published numbers of trained values, and the distributed bytes at 2 or 4 bytes each. */
static void test_known_sizes(void)
{
	static const struct {
		const char *name;
		uint64_t bytes;
	} known[] = {
		{"alexnet", 4 * UINT64_C(60965224)},     {"vgg-19", 4 * UINT64_C(143667240)},
		    {"resnet-50", 4 * UINT64_C(25557032)},
		{"resnet-152", 4 * UINT64_C(60192808)},  {"bert-large", 4 * UINT64_C(336226108)},
		    {"gpt-2-xl", 4 * UINT64_C(1557611200)},
		{"llama-7b", 2 * UINT64_C(6738415616)},
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		struct model model;
		load(&model, known[i].name, NULL);
		CHECK_U64(workload_model_bytes(&model), known[i].bytes);
		CHECK_U64(workload_model_aggregated_bytes(&model), known[i].bytes);
		CHECK(model.times_assumed && model.forward_s > 0 && fabs(model.backward_s / model.forward_s - 2) < 1e-12);
		workload_model_fini(&model);
	}
}

/* Table 2 of the network operators' paper, in gigabits, and its table 3. */
static void test_paper(void)
{
	static const struct {
		const char *name;
		double gigabits, slack, forward_s, backward_s, slowest, distribution;
	} paper[] = {
		{"inception-v3", 0.715, 0.001, 0.176, 0.296, 1.25, 1},
		{"vgg-16", 6.58, 0.01, 0.169, 0.024, 1, 1},
		{"resnet-101", 1.42, 0.01, 0.176, 0.180, 2.04, 1},
		{"resnet-200", 2.06, 0.02, 0.357, 0.34, 1.36, 1.11},
	};
	for (size_t i = 0; i < sizeof paper / sizeof paper[0]; i++)
		for (int set = MODEL_PUBLIC; set <= MODEL_CALIBRATED; set++) {
			struct model model;
			load(&model, paper[i].name, &(struct model_options){.set = (enum model_set)set});
			CHECK(fabs((double)workload_model_aggregated_bytes(&model) * 8e-9 - paper[i].gigabits) <= paper[i].slack);
			CHECK(model.forward_s == paper[i].forward_s && model.backward_s == paper[i].backward_s &&
			      !model.times_assumed);
			CHECK(model.slowest_factor == (set >= MODEL_FACTORS ? paper[i].slowest : 1));
			CHECK(model.distribution_factor == (set >= MODEL_FACTORS ? paper[i].distribution : 1));
			CHECK_U64(model.worker_factor_count, set == MODEL_CALIBRATED ? 32 : 0);
			CHECK((model.distribution_order != NULL) == (set == MODEL_CALIBRATED));
			workload_model_fini(&model);
		}
}

/* The last layer's gradient is the first, the first layer's the last; the times in between add up. */
static void test_shares(void)
{
	struct model model;
	double backward = 0, before = 1;
	uint32_t order = 0;
	load(&model, "vgg-16", NULL);
	for (uint32_t i = 0; i < model.parameter_count; i++) {
		const struct model_parameter *parameter = &model.parameters[i];
		backward += parameter->backward_share;
		CHECK(parameter->grad_ready <= before && parameter->forward_order >= order);
		before = parameter->grad_ready;
		order = parameter->forward_order;
	}
	CHECK(fabs(backward - 1) < 1e-9);
	CHECK(model.parameters[0].grad_ready == 1 && before == 0);
	CHECK_STR(model.parameters[model.parameter_count - 1].name, "fc8/biases");
	workload_model_fini(&model);
}

/* Other accelerators, batches and widths of values. */
static void test_options(void)
{
	struct model usual, other;
	struct error err = {0};
	double flops;
	CHECK(workload_accelerator_rate("v100-fp32", &flops, &err) == ESP_OK && flops == 15.7e12 * 0.5);
	load(&usual, "resnet-50", NULL);
	CHECK(fabs(usual.forward_s - 2 * 4089184256.0 * 32 / flops) < 1e-9);
	load(&other, "resnet-50", &(struct model_options){.flops = 2 * flops, .batch = 128, .value_bytes = 2});
	CHECK(fabs(other.forward_s / usual.forward_s - 2) < 1e-9);
	CHECK_U64(workload_model_bytes(&other), workload_model_bytes(&usual) / 2);
	workload_model_fini(&usual);
	workload_model_fini(&other);
	CHECK(workload_accelerator_rate("45T", &flops, &err) == ESP_OK && flops == 45e12);
	CHECK(workload_accelerator_rate("4.5e13", &flops, &err) == ESP_OK && flops == 4.5e13);
	CHECK(workload_accelerator_rate("v100-fp31", &flops, &err) == ESP_EINVAL);
	CHECK_MSG(strstr(err.text, "did you mean v100-fp32?"), "%s", err.text);
	CHECK(workload_accelerator_rate("T", &flops, &err) == ESP_EINVAL &&
	      workload_accelerator_rate("-1T", &flops, &err) == ESP_EINVAL);
	CHECK(workload_accelerator_rate("", &flops, &err) == ESP_EINVAL);
}

/* ---- errors, and their places ---- */

#define HEAD "{\"format\": \"espalier-model-1\", \"name\": \"m\", \"batch\": 32, \"value_bytes\": 4, "
#define TIMES "\"times\": {\"forward_s\": 1, \"backward_s\": 2, \"source\": \"made up\"}, "
#define FC "{\"name\": \"fc\", \"count\": 10, \"forward_order\": 0, \"variable\": 0, " \
	"\"forward_share\": 1, \"grad_ready\": 1}"

#define HALF(name, variable) \
	"{\"name\": \"" name "\", \"count\": 10, \"forward_order\": 0, \"variable\": " variable \
	", \"forward_share\": 0.5, \"grad_ready\": 1}"

static const struct {
	const char *text;
	enum model_set set;
	enum esp_status status;
	const char *says;
} texts[] = {
	{HEAD TIMES "\"parameters\": [" FC "]}", MODEL_PUBLIC, ESP_OK, ""},
	{HEAD "\"accelerator\": \"45T\", \"parameters\": [" FC "]}", MODEL_PUBLIC, ESP_EINVAL,
	 "m.json: no times follow from 0 multiply-adds"},
	{HEAD "\"accelerator\": \"abacus\", \"parameters\": [" FC "]}", MODEL_PUBLIC, ESP_EPARSE,
	 "m.json: \"accelerator\": 'abacus' is neither"},
	{HEAD "\"parameters\": [" FC "]}", MODEL_PUBLIC, ESP_EPARSE, "m.json: \"accelerator\" is missing"},
	{HEAD TIMES "\"parameters\": [" FC "]}", MODEL_FACTORS, ESP_EINVAL,
	 "no values of the set 'factors'; use the set 'public'"},
	{HEAD TIMES "\"factors\": {}, \"parameters\": [" FC "]}", MODEL_CALIBRATED, ESP_EINVAL,
	 "no values of the set 'calibrated'; use the set 'factors'"},
	{HEAD TIMES "\"parameters\": [" FC "]}", MODEL_CALIBRATED, ESP_EINVAL,
	 "no values of the set 'calibrated'; use the set 'public'"},
	/* Each set may be present without the other one. */
	{HEAD TIMES "\"calibrated\": {\"worker_factors\": [1, 2]}, \"parameters\": [" FC "]}", MODEL_CALIBRATED, ESP_OK,
	 ""},
	{HEAD TIMES "\"calibrated\": {\"worker_factors\": [1, 0]}, \"parameters\": [" FC "]}", MODEL_CALIBRATED, ESP_EPARSE,
	 "\"worker_factors\"[1] is no number above 0"},
	{HEAD TIMES "\"factors\": [2], \"parameters\": [" FC "]}", MODEL_PUBLIC, ESP_EPARSE, "\"factors\" is no object"},
	{HEAD TIMES "\"parameters\": [" HALF("a", "0") ", " HALF("b", "1") "]}", MODEL_PUBLIC, ESP_OK, ""},
	{HEAD TIMES "\"parameters\": [" HALF("a", "0") ", " HALF("a", "1") "]}", MODEL_PUBLIC, ESP_EPARSE,
	 "m.json: two parameters have the name 'a'"},
	{HEAD TIMES "\"parameters\": [" HALF("a", "1") ", " HALF("b", "1") "]}", MODEL_PUBLIC, ESP_EPARSE,
	 "m.json: two entries have \"variable\": 1"},
	{HEAD TIMES "\"moving_averages\": [{\"name\": \"mean\", \"count\": 1, \"variable\": 0}], \"parameters\": [" FC "]}",
	 MODEL_PUBLIC, ESP_EPARSE,
	 "m.json: two entries have \"variable\": 0"},
	{HEAD TIMES "\"parameters\": [\n" FC ",,]}", MODEL_PUBLIC, ESP_EPARSE, "m.json:2:"},
	{"", MODEL_PUBLIC, ESP_EPARSE, "m.json:1:0: "},
	{"[]", MODEL_PUBLIC, ESP_EPARSE, "m.json: it is no model"},
	{"{\"format\": \"espalier-model-2\"}", MODEL_PUBLIC, ESP_EPARSE, "m.json: it is no model"},
	{HEAD TIMES "\"parameters\": []}", MODEL_PUBLIC, ESP_EPARSE, "\"parameters\" has 0 entries, not from 1"},
	{HEAD TIMES "\"parameters\": 7}", MODEL_PUBLIC, ESP_EPARSE, "\"parameters\" is no list"},
	{HEAD TIMES "\"parameters\": [" FC ", 7]}", MODEL_PUBLIC, ESP_EPARSE, "m.json: parameters[1]: it is no object"},
	{HEAD TIMES "\"parameters\": [{\"name\": \"fc\", \"count\": 0}]}", MODEL_PUBLIC, ESP_EPARSE,
	 "m.json: parameters[0] ('fc'): \"count\" is 0, not from 1 to"},
	{HEAD TIMES "\"parameters\": [{\"name\": \"fc\", \"count\": 1.5}]}", MODEL_PUBLIC, ESP_EPARSE,
	 "\"count\" is no whole number"},
	{HEAD TIMES "\"parameters\": [{\"name\": \"\"}]}", MODEL_PUBLIC, ESP_EPARSE, "\"name\" is empty"},
	{HEAD TIMES "\"parameters\": [" FC ", " FC "]}", MODEL_PUBLIC, ESP_EPARSE,
	 "\"forward_share\" sum up to 2, not to 1"},
	{HEAD TIMES "\"parameters\": [{\"name\": \"fc\", \"count\": 10, \"forward_order\": 0, \"variable\": 0, "
	            "\"forward_share\": 1, "
	            "\"grad_ready\": 1.5}]}", MODEL_PUBLIC, ESP_EPARSE, "\"grad_ready\" is 1.5, not from 0 to 1"},
	{HEAD TIMES "\"parameters\": [{\"name\": \"fc\", \"count\": 10, \"forward_order\": 0, \"variable\": 0, "
	            "\"forward_share\": 1, "
	            "\"grad_ready\": null}]}", MODEL_PUBLIC, ESP_EPARSE, "nothing to aggregate"},
	{HEAD TIMES "\"factors\": {}, \"calibrated\": {\"distribution_order\": [1]}, \"parameters\": [" FC "]}",
	 MODEL_CALIBRATED, ESP_EPARSE,
	 "\"distribution_order\"[0] is no index"},
	{HEAD TIMES "\"factors\": {}, \"calibrated\": {\"distribution_order\": [0, 0]}, \"parameters\": [" FC "]}",
	 MODEL_CALIBRATED, ESP_EPARSE,
	 "\"distribution_order\" has 2 entries for 1 parameters"},
	{HEAD TIMES "\"factors\": {}, \"calibrated\": {\"worker_factors\": [1, 0]}, \"parameters\": [" FC "]}",
	 MODEL_CALIBRATED, ESP_EPARSE,
	 "\"worker_factors\"[1] is no number above 0"},
	{HEAD TIMES "\"batch\": 64, \"parameters\": [" FC "]}", MODEL_PUBLIC, ESP_EPARSE, "m.json:1:"},
	{HEAD TIMES "\"size_scal\": 2, \"parameters\": [" FC "]}", MODEL_PUBLIC, ESP_EPARSE,
	 "m.json: there is no key 'size_scal'; did you mean \"size_scale\"?"},
	{HEAD TIMES "\"parameters\": [{\"name\": \"fc\", \"count\": 10, \"forwardorder\": 0}]}", MODEL_PUBLIC, ESP_EPARSE,
	 "m.json: parameters[0] ('fc'): there is no key 'forwardorder'; did you mean \"forward_order\"?"},
	{HEAD TIMES "\"moving_averages\": [{\"name\": \"mean\", \"count\": 1, \"variable\": 1, \"macs\": 1}], "
	            "\"parameters\": [" FC "]}", MODEL_PUBLIC,
	 ESP_EPARSE, "m.json: moving_averages[0] ('mean'): there is no key 'macs'"},
	{HEAD "\"times\": {\"forward_s\": 1, \"backward_s\": 2, \"source\": \"\", \"backwards_s\": 2}, \"parameters\": [" FC
	 "]}", MODEL_PUBLIC,
	 ESP_EPARSE, "there is no key 'backwards_s'; did you mean \"backward_s\"?"},
	/* Also in sets that are not requested. */
	{HEAD TIMES "\"factors\": {\"slowest\": 2}, \"parameters\": [" FC "]}", MODEL_PUBLIC, ESP_EPARSE,
	 "there is no key 'slowest'"},
	{HEAD TIMES "\"calibrated\": {\"workers\": 2}, \"parameters\": [" FC "]}", MODEL_PUBLIC, ESP_EPARSE,
	 "there is no key 'workers'"},
	{HEAD TIMES "\"size_scale\": 1e6, \"parameters\": [{\"name\": \"fc\", \"count\": 281474976710656}]}", MODEL_PUBLIC,
	 ESP_EPARSE,
	 "bytes are too many"},
};

static void test_texts(void)
{
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct model model;
		struct error err = {0};
		const struct model_options options = {.set = texts[i].set};
		enum esp_status status =
			workload_model_parse(&model, "m.json", texts[i].text, strlen(texts[i].text), &options, &err);
		CHECK_MSG(status == texts[i].status && strstr(err.text, texts[i].says), "text %zu: %d \"%s\"", i, status,
		          err.text);
		workload_model_fini(&model);
	}
}

static void test_measured_batch(void)
{
	static const char text[] = HEAD TIMES "\"parameters\": [" FC "]}";
	struct model model;
	struct error err = {0};
	CHECK(workload_model_parse(&model, "m.json", text, sizeof text - 1, &(struct model_options){.batch = 64}, &err) ==
	      ESP_EINVAL);
	CHECK_MSG(strstr(err.text, "measured with batches of 32; name an accelerator"), "%s", err.text);
	workload_model_fini(&model);
}

int main(void)
{
	test_known_sizes();
	test_paper();
	test_shares();
	test_options();
	test_texts();
	test_measured_batch();
	return 0;
}
