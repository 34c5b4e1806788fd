#include "sim/workload/traces.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "sim/workload/replay.h"
#include "sim/workload/traces_edit.h"

static void load_model(struct model *model, const char *name, enum model_set set)
{
	char path[512];
	struct error err = {0};
	snprintf(path, sizeof path, "%s/%s.json", MODELS_FOLDER, name);
	CHECK_MSG(workload_model_load(model, path, &(struct model_options){.set = set}, &err) == ESP_OK, "%s", err.text);
}

static const struct model_parameter *find(const struct model *model, const char *name)
{
	for (uint32_t i = 0; i < model->parameter_count; i++)
		if (strcmp(model->parameters[i].name, name) == 0)
			return &model->parameters[i];
	CHECK_MSG(false, "no parameter %s", name);
	return NULL;
}

/* ---- a model's traces reproduce the model ---- */

static void test_make(const char *name, uint32_t servers)
{
	struct model model;
	struct traces traces;
	struct replay replay;
	struct error err = {0};
	load_model(&model, name, MODEL_CALIBRATED);
	CHECK(workload_traces_make(&traces, &model,
	                           &(struct traces_make){.workers = 3, .iterations = 2, .servers = servers},
	                           &err) == ESP_OK);
	CHECK_U64(traces.worker_count, 6);
	CHECK_MSG(workload_replay_init(&replay, &traces, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(replay.server_count, servers);
	CHECK_U64(replay.model.parameter_count, model.parameter_count);
	CHECK_U64(workload_model_bytes(&replay.model), workload_model_bytes(&model));
	CHECK_U64(workload_model_aggregated_bytes(&replay.model), workload_model_aggregated_bytes(&model));
	for (uint32_t i = 0; i < replay.model.parameter_count; i++) {
		const struct model_parameter *is = &replay.model.parameters[i], *was = find(&model, is->name);
		CHECK(is->bytes == was->bytes && is->aggregated == was->aggregated && is->distributed);
		CHECK_U64(is->variable % servers, was->variable % servers);
		CHECK(fabs(is->forward_share - was->forward_share) < 1e-12);
		for (uint32_t f = 0; f < replay.file_count; f++) {
			double wanted = was->aggregated ? was->grad_ready * model.backward_s *
			                model.worker_factors[replay.files[f].rank] : 0;
			CHECK(fabs(replay.files[f].ready_s[i] - wanted) < 1e-12);
		}
	}
	workload_replay_fini(&replay);
	workload_traces_fini(&traces);
	workload_model_fini(&model);
}

/* Files: saved traces load unchanged. */
static void test_files(void)
{
	struct model model;
	struct traces traces, again;
	struct error err = {0};
	char folder[] = "/tmp/traces-test-XXXXXX", path[128], command[160];
	CHECK(mkdtemp(folder) != NULL);
	load_model(&model, "vgg-16", MODEL_PUBLIC);
	CHECK(workload_traces_make(&traces, &model, &(struct traces_make){2, 1, 4, 0.2, 7}, &err) == ESP_OK);
	CHECK_MSG(workload_traces_save(&traces, folder, &err) == ESP_OK, "%s", err.text);
	CHECK(workload_traces_save(&traces, folder, &err) == ESP_EINVAL && strstr(err.text, "is not empty"));
	CHECK_MSG(workload_traces_load(&again, folder, &err) == ESP_OK, "%s", err.text);
	CHECK(again.worker_count == 2 && again.server_count == 4 && again.layer_count == traces.layer_count);
	CHECK(again.forward_s == traces.forward_s && again.first_gradient_s == traces.first_gradient_s);
	for (uint32_t i = 0; i < traces.workers[1].trace.count; i++)
		CHECK(again.workers[1].trace.events[i].time_s == traces.workers[1].trace.events[i].time_s);
	workload_traces_fini(&again);
	/* A truncated line is reported with its file. */
	snprintf(path, sizeof path, "%s/worker-1-0.csv", folder);
	CHECK(truncate(path, 60) == 0);
	CHECK(workload_traces_load(&again, folder, &err) == ESP_EPARSE);
	CHECK_MSG(strstr(err.text, "worker-1-0.csv:2: "), "%s", err.text);
	workload_traces_fini(&again);
	/* An entry with the name of a trace that is no file is an error, and not ignored. */
	CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
	CHECK(workload_traces_load(&again, folder, &err) == ESP_EPARSE);
	CHECK_MSG(strstr(err.text, "worker-1-0.csv is not a file"), "%s", err.text);
	workload_traces_fini(&again);
	CHECK(rmdir(path) == 0 && symlink("nowhere", path) == 0);
	CHECK(workload_traces_load(&again, folder, &err) == ESP_EPARSE);
	CHECK_MSG(strstr(err.text, "a link to nothing"), "%s", err.text);
	workload_traces_fini(&again);
	workload_traces_fini(&traces);
	workload_model_fini(&model);
	snprintf(command, sizeof command, "rm -r %s", folder);
	CHECK(system(command) == 0);
}

/* ---- changes ---- */

static double last(const struct traces *traces, uint32_t worker)
{
	const struct trace *trace = &traces->workers[worker].trace;
	return trace->events[trace->count - 1].time_s;
}

static void test_scale(void)
{
	struct model model;
	struct traces traces;
	struct error err = {0};
	load_model(&model, "resnet-101", MODEL_FACTORS);
	CHECK(workload_traces_make(&traces, &model, &(struct traces_make){2, 1, 1, 0, 1}, &err) == ESP_OK);
	double before = last(&traces, 1);
	CHECK(fabs(before - 0.18 * 2.04) < 1e-9);
	workload_traces_scale(&traces, 2);
	CHECK(fabs(last(&traces, 1) - before / 2) < 1e-12 && traces.forward_s == 0.176 / 2);
	workload_traces_fini(&traces);
	workload_model_fini(&model);
}

/* Each module adds its bytes and its time, and nothing else changes. */
static void test_add(const char *prefix, uint32_t count, uint32_t servers)
{
	struct model model;
	struct traces traces;
	struct replay replay;
	struct error err = {0};
	uint64_t bytes = 0;
	double forward = 0, backward = 0, shares = 0;
	load_model(&model, "inception-v3", MODEL_PUBLIC);
	for (uint32_t i = 0; i < model.parameter_count; i++) {
		const struct model_parameter *parameter = &model.parameters[i];
		if (strncmp(parameter->name, prefix, strlen(prefix)) != 0)
			continue;
		bytes += parameter->bytes;
		forward += parameter->forward_share * model.forward_s;
		backward += parameter->backward_share * model.backward_s;
	}
	CHECK(workload_traces_make(&traces, &model, &(struct traces_make){2, 1, servers, 0, 1}, &err) == ESP_OK);
	CHECK_MSG(workload_traces_add(&traces, &(struct traces_addition){&model, prefix, NULL, count - 1}, &err) == ESP_OK,
	          "%s", err.text);
	CHECK_MSG(workload_traces_add(&traces, &(struct traces_addition){&model, prefix, NULL, 1}, &err) == ESP_OK, "%s",
	          err.text);
	CHECK_MSG(workload_replay_init(&replay, &traces, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(workload_model_bytes(&replay.model), workload_model_bytes(&model) + count * bytes);
	CHECK_U64(workload_model_aggregated_bytes(&replay.model), workload_model_aggregated_bytes(&model) + count * bytes);
	CHECK(fabs(replay.model.forward_s - model.forward_s - count * forward) < 1e-9);
	CHECK(fabs(replay.model.backward_s - model.backward_s - count * backward) < 1e-9);
	for (uint32_t i = 0; i < replay.model.parameter_count; i++)
		shares += replay.model.parameters[i].forward_share;
	CHECK(fabs(shares - 1) < 1e-6);
	/* A layer behind the module keeps its time; one before it is delayed by the sum. */
	CHECK(fabs(find(&replay.model, "logits/weights")->grad_ready) < 1e-12);
	CHECK(fabs(find(&replay.model, "conv0/weights")->grad_ready - 1) < 1e-9);
	workload_replay_fini(&replay);
	CHECK(workload_traces_add(&traces, &(struct traces_addition){&model, "nothing", NULL, 1}, &err) == ESP_EINVAL);
	CHECK(workload_traces_add(&traces, &(struct traces_addition){&model, "nothing", prefix, 1}, &err) == ESP_EINVAL);
	workload_traces_fini(&traces);
	workload_model_fini(&model);
}

/* Before the very first gradient: times start from the new ones. */
static void test_add_first(void)
{
	struct model model;
	struct traces traces;
	struct error err = {0};
	load_model(&model, "vgg-16", MODEL_PUBLIC);
	CHECK(workload_traces_make(&traces, &model, &(struct traces_make){1, 1, 1, 0, 1}, &err) == ESP_OK);
	CHECK_MSG(workload_traces_add(&traces, &(struct traces_addition){&model, "conv3_3", "fc8", 1}, &err) == ESP_OK,
	          "%s", err.text);
	CHECK(traces.workers[0].trace.events[0].time_s == 0 && traces.first_gradient_s > 0);
	CHECK_STR(traces.workers[0].trace.events[0].parameter, "conv3_3+1/weights");
	workload_traces_fini(&traces);
	workload_model_fini(&model);
}

/* ---- different names, and invalid texts ---- */

#define HEADER "time_s,parameter,bytes,source,destination\n"
#define MODEL "{\"forward_s\": 1}"

struct text_file {
	const char *name, *text;
};

static enum esp_status parse(struct traces *traces, const struct text_file *files, struct error *err)
{
	enum esp_status status = ESP_OK;
	*traces = (struct traces){0};
	for (; files->name && status == ESP_OK; files++)
		status = workload_traces_parse_file(traces, files->name, files->text, strlen(files->text), err);
	return status == ESP_OK ? workload_traces_finish(traces, err) : status;
}

/* TensorFlow: "conv/read" is distributed, "grad_conv" comes back; the moving average is only distributed. */
static void test_other_names(void)
{
	static const struct text_file files[] = {
		{"worker-0-0.csv", HEADER "0,grad_fc,40,w0,ps1\n0.5,grad_b,8,w0,ps0\n1,grad_a,8,w0,ps0\n"},
		{"distribution-0.csv", HEADER "0,a/read,8,ps0,w\n1,b/read,8,ps0,w\n2,mean/read,4,ps0,w\n"},
		{"distribution-1.csv", HEADER "0,fc/read,40,ps1,w\n"},
		{"model.json", "{\"forward_s\": 2, \"forward_order\": [\"a/read\", \"b/read\", \"fc/read\"], "
		               "\"first_gradient_s\": 0.25}"},
		{NULL, NULL},
	};
	struct traces traces;
	struct replay replay;
	struct error err = {0};
	CHECK_MSG(parse(&traces, files, &err) == ESP_OK, "%s", err.text);
	CHECK_MSG(workload_replay_init(&replay, &traces, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(replay.model.parameter_count, 4);
	CHECK(fabs(find(&replay.model, "a/read")->grad_ready - 1) < 1e-12 && replay.model.backward_s == 1.25);
	CHECK(fabs(find(&replay.model, "b/read")->grad_ready - 0.75 / 1.25) < 1e-12);
	CHECK(fabs(find(&replay.model, "fc/read")->grad_ready - 0.25 / 1.25) < 1e-12);
	CHECK(!find(&replay.model, "mean/read")->aggregated);
	CHECK_U64(find(&replay.model, "fc/read")->variable % 2, 1);
	CHECK(fabs(find(&replay.model, "b/read")->forward_share - 1.0 / 3) < 1e-12);
	workload_replay_fini(&replay);
	workload_traces_fini(&traces);
}

/* Servers with other names than numbers: by the file's name, if the server does not use its own. */
static void test_named_servers(void)
{
	static const struct text_file files[] = {
		{"worker-0-0.csv", HEADER "0,fc,40,w0,ps:1\n1,conv,8,w0,ps:0\n"},
		{"distribution-ps:1.csv", HEADER "0,fc,40,somebody,w\n"},
		{"distribution-ps:0.csv", HEADER "0,conv,8,somebody,w\n"},
		{"model.json", MODEL},
		{NULL, NULL},
	};
	struct traces traces;
	struct replay replay;
	struct error err = {0};
	CHECK_MSG(parse(&traces, files, &err) == ESP_OK, "%s", err.text);
	CHECK_STR(traces.servers[0].name, "ps:0");
	CHECK_MSG(workload_replay_init(&replay, &traces, &err) == ESP_OK, "%s", err.text);
	CHECK(find(&replay.model, "fc")->variable % 2 == 1 && find(&replay.model, "conv")->variable % 2 == 0);
	workload_replay_fini(&replay);
	workload_traces_fini(&traces);
}

static void test_wrong(void)
{
	static const struct {
		struct text_file files[5];
		const char *says;
	} cases[] = {
		{{{"worker-0-0.csv", HEADER "0,a,8,w,s\n"}}, "there is no model.json"},
		{{{"model.json", MODEL}}, "there is no worker-RANK-ITERATION.csv"},
		{{{"model.json", "{}"}}, "model.json:1: \"forward_s\", the seconds"},
		{{{"model.json", "{\"forward_s\": 1,\n}"}}, "model.json:2:"},
		{{{"model.json", "{\"forward_s\": 1, \"forward_order\": [7]}"}},
		 "model.json:1: \"forward_order\"[0] is no name"},
		{{{"model.json", "{\"forward_s\": 1, \"forward_order\": [\"a\"], \"forward_share\": [0.5]}"}},
		 "sums up to 0.5, not to 1"},
		{{{"model.json", "{\n \"name\": \"forward_ordr\",\n \"forward_s\": 1,\n \"forward_ordr\": []}"}},
		 "model.json:4: there is no key 'forward_ordr'; did you mean \"forward_order\"?"},
		{{{"model.json", "{\"forward_s\": 1, \"colour\": [{\"forward_s\": 1}]}"}},
		 "model.json:1: there is no key 'colour'"},
		{{{"model.json", "{\"forward_s\": 1,\n \"forward_s\": 2}"}}, "model.json:2:"},
		{{{"model.json", "{\"name\": \"a \\\"name\\\"\",\n\n \"forward_s\": -1}"}},
		 "model.json:3: \"forward_s\", the seconds"},
		{{{"worker-1.csv", HEADER "0,a,8,w,s\n"}}, "'worker-1.csv' is not named worker-RANK-ITERATION.csv"},
		{{{"worker-01-0.csv", HEADER "0,a,8,w,s\n"}}, "is not named worker-"},
		{{{"distribution-a b.csv", HEADER "0,a,8,w,s\n"}},
		 "'distribution-a b.csv' is not named distribution-SERVER.csv"},
		{{{"distribution-.csv", HEADER "0,a,8,w,s\n"}}, "'distribution-.csv' is not named distribution-SERVER.csv"},
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0.5,a,8,w,s\n"}},
		 "worker-0-0.csv:2: the first event is at 0.5, not at 0"},
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,a,8,w,s\n1,b,8,w,s\n2,a,8,w,s\n"}},
		 "worker-0-0.csv:4: 'a' stands in line 2 already"},
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,a,8,w,s\n"}, {"worker-1-0.csv", HEADER "0,a,9,w,s\n"}},
		 "worker-1-0.csv:2: 'a' has 9 bytes here and 8 in worker-0-0.csv"},
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,a,8,w,s\n"}, {"worker-1-0.csv", HEADER "0,b,8,w,s\n"}},
		 "is missing in worker-"},
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,a,8,w,s0\n"}, {"worker-1-0.csv", HEADER "0,a,8,w,s1\n"}},
		 "worker-1-0.csv:2: 'a' has another destination"},
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,a,8,w,s0\n"},
		  {"distribution-0.csv", HEADER "0,a,8,s0,w\n1,b,8,s1,w\n"}},
		 "distribution-0.csv:3: the source 's1' is not that of the line before"},
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,a,8,w,s0\n"},
		  {"distribution-0.csv", HEADER "0,a,8,s0,w\n1,a,8,s0,w\n"}},
		 "distribution-0.csv:3: 'a' stands in line 2 already"},
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,a,8,w,s\n1,b,8,v,s\n"}},
		 "worker-0-0.csv:3: the source 'v' is not that of the line before"},
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,a,8,w,s0\n"},
		  {"distribution-0.csv", HEADER "0,a,8,s0,w\n"},
		  {"distribution-1.csv", HEADER "0,b,8,s1,w\n1,a,8,s1,w\n"}},
		 "distribution-1.csv:3: 'a' is sent by two servers, see distribution-0.csv:2"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct traces traces;
		struct error err = {0};
		CHECK_MSG(parse(&traces, cases[i].files, &err) == ESP_EPARSE, "case %zu was accepted", i);
		CHECK_MSG(strstr(err.text, cases[i].says), "case %zu: \"%s\"", i, err.text);
		workload_traces_fini(&traces);
	}
}

static void test_wrong_together(void)
{
	static const struct {
		struct text_file files[5];
		const char *says;
	} cases[] = {
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,a,8,w,ps7\n"},
		  {"distribution-0.csv", HEADER "0,a,8,ps0,w\n"},
		  {"distribution-1.csv", HEADER "0,b,8,ps1,w\n"}}, "worker-0-0.csv:2: the destination 'ps7' is no server"},
		/* One distribution file does not cover two servers. */
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,a,8,w,ps0\n0,b,8,w,ps1\n"},
		  {"distribution-0.csv", HEADER "0,a,8,ps0,w\n"}},
		 "worker-0-0.csv:3: the destination 'ps1' is no server"},
		/* A missing line of a distribution file, another size, another server. */
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,a,8,w,ps0\n1,b,8,w,ps0\n"},
		  {"distribution-0.csv", HEADER "0,a,8,ps0,w\n1,mean,8,ps0,w\n"}},
		 "worker-0-0.csv:3: 'b' of 8 bytes has no parameter in distribution-0.csv"},
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,grad_a,8,w,ps0\n1,grad_b,4,w,ps0\n"},
		  {"distribution-0.csv", HEADER "0,a,8,ps0,w\n"}},
		 "worker-0-0.csv:3: 'grad_b' of 4 bytes has no parameter in distribution-0.csv"},
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,a,8,w,ps0\n"},
		  {"distribution-0.csv", HEADER "0,b,8,ps0,w\n1,a,4,ps0,w\n"}},
		 "worker-0-0.csv:2: 'a' has 8 bytes here and 4 in distribution-0.csv:3"},
		{{{"model.json", MODEL}, {"worker-0-0.csv", HEADER "0,a,8,w,ps0\n"},
		  {"distribution-0.csv", HEADER "0,b,8,ps0,w\n"},
		  {"distribution-1.csv", HEADER "0,a,8,ps1,w\n"}},
		 "worker-0-0.csv:2: 'a' goes to another server than that which sends it in distribution-1.csv:2"},
		{{{"model.json", "{\"forward_s\": 1, \n\"forward_order\": [\"z\"]}"},
		  {"worker-0-0.csv", HEADER "0,a,8,w,ps0\n"}},
		 "model.json:2: \"forward_order\"[0] 'z' is in no trace"},
		{{{"model.json", "{\"forward_s\": 1, \"forward_order\": [\"a\", \"a\"]}"},
		  {"worker-0-0.csv", HEADER "0,a,8,w,ps0\n"}},
		 "model.json:1: \"forward_order\" names 'a' twice"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct traces traces;
		struct replay replay;
		struct error err = {0};
		CHECK_MSG(parse(&traces, cases[i].files, &err) == ESP_OK, "%s", err.text);
		CHECK(workload_replay_init(&replay, &traces, &err) == ESP_EPARSE);
		CHECK_MSG(strstr(err.text, cases[i].says), "case %zu: \"%s\"", i, err.text);
		workload_replay_fini(&replay);
		workload_traces_fini(&traces);
	}
}

/* More workers than files: each has one of the recorded files, the same for the same seed. */
static void test_pick(void)
{
	struct model model;
	struct traces traces;
	struct replay replay;
	struct error err = {0};
	unsigned seen[4] = {0};
	load_model(&model, "vgg-16", MODEL_PUBLIC);
	CHECK(workload_traces_make(&traces, &model, &(struct traces_make){4, 2, 1, 0.5, 3}, &err) == ESP_OK);
	CHECK(workload_replay_init(&replay, &traces, &err) == ESP_OK);
	for (uint32_t worker = 0; worker < 400; worker++) {
		const struct replay_file *file = workload_replay_pick(&replay, worker, 1, 42);
		CHECK(file == workload_replay_pick(&replay, worker, 1, 42) && file->iteration == 1 &&
		      (worker >= 4 || file->rank == worker));
		seen[file->rank]++;
		CHECK(workload_replay_pick(&replay, worker, 9, 42)->rank < 4);
	}
	struct replay_coverage all = workload_replay_coverage(&replay, 4, 2),
						   more = workload_replay_coverage(&replay, 6, 10);
	CHECK(all.workers == 4 && all.iterations == 2 && all.drawn == 0);
	CHECK(more.workers == 4 && more.iterations == 2 && more.drawn == 6 * 10 - 4 * 2);
	for (unsigned rank = 0; rank < 4; rank++)
		CHECK_MSG(seen[rank] > 50, "file %u was drawn %u times of 400", rank, seen[rank]);
	workload_replay_fini(&replay);
	workload_traces_fini(&traces);
	workload_model_fini(&model);
}

int main(void)
{
	test_make("inception-v3", 1);
	test_make("inception-v3", 4);
	test_make("resnet-200", 8);
	test_files();
	test_scale();
	test_add("mixed_35x35x288b", 5, 1);
	test_add("mixed_17x17x768e", 2, 3);
	test_add_first();
	test_other_names();
	test_named_servers();
	test_wrong();
	test_wrong_together();
	test_pick();
	return 0;
}
