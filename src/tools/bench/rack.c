#include "tools/bench/rack.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/lab/client.h"

const char *bench_rack_path(const struct bench_rack *rack, const char *name, char path[RACK_PATH])
{
	snprintf(path, RACK_PATH, "%s/%s", rack->folder, name);
	return path;
}

void bench_rack_show_log(const struct bench_rack *rack, const char *name)
{
	char path[RACK_PATH], line[512];
	FILE *file = fopen(bench_rack_path(rack, name, path), "re");

	while (file && fgets(line, sizeof(line), file))
		fputs(line, stderr);
	if (file)
		fclose(file);
}

void bench_rack_begin(const struct bench_rack *rack, struct child_words *words, bool is_at_last)
{
	*words = (struct child_words){.count = 0};
	bench_child_add(words, rack->self);
	if (is_at_last && rack->lab[0])
		bench_child_add_all(words, (const char *const[]){"lab", "exec", "--name", rack->lab, rack->last_host, "--",
		                                                 rack->self, NULL});
}

void bench_rack_launch(const struct bench_rack *rack, struct child_words *words, const char *workers,
                       const char *variable)
{
	bench_rack_begin(rack, words, false);
	if (rack->lab[0])
		bench_child_add_all(words, (const char *const[]){"lab", "run", "--name", rack->lab, NULL});
	else
		bench_child_add(words, "run");
	bench_child_add_all(words, (const char *const[]){"-n", workers, "--no-prefix", "--env", variable, "--", NULL});
}

/* ---- the lab ---- */

static enum esp_status find_last(struct bench_rack *rack, uint32_t workers, struct error *err)
{
	const struct lab *lab;
	char address[LAB_ADDRESS_TEXT];
	enum esp_status status = lab_client_map(rack->lab, &lab, err);

	if (status != ESP_OK)
		return status;
	snprintf(rack->last_host, sizeof(rack->last_host), "%s", lab_host(lab, workers)->name);
	snprintf(rack->last_address, sizeof(rack->last_address), "%s", lab_address(lab, workers, 0, address));
	lab_client_unmap(lab);
	return ESP_OK;
}

enum esp_status bench_rack_make_lab(struct bench_rack *rack, const char *prefix, uint32_t workers, uint64_t rate,
                                    uint64_t last_rate, struct error *err)
{
	char hosts[16], rates[32], last[32];
	struct child_words words;

	snprintf(rack->lab, sizeof(rack->lab), "%s%d", prefix, (int)getpid());
	snprintf(hosts, sizeof(hosts), "%u", workers + 1);
	snprintf(rates, sizeof(rates), "%" PRIu64 "bit", rate);
	snprintf(last, sizeof(last), "%" PRIu64 "bit", last_rate);
	bench_rack_begin(rack, &words, false);
	bench_child_add_all(&words, (const char *const[]){"lab", "up", "--name", rack->lab, "--racks", "1", "--hosts",
	                                                  hosts, "--rate", rates, "--no-check", "--json", NULL});
	enum esp_status status = bench_child_do(&words, RACK_SETUP_SECONDS, err);
	if (status != ESP_OK) {
		if (status != ESP_EABORTED) /* else it may have been made before the signal */
			rack->lab[0] = '\0';
		return status;
	}
	status = find_last(rack, workers, err);
	if (status != ESP_OK)
		return status;
	bench_rack_begin(rack, &words, false);
	bench_child_add_all(&words, (const char *const[]){"lab", "set", "--name", rack->lab, rack->last_host, "rate", last,
	                                                  NULL});
	return bench_child_do(&words, RACK_SETUP_SECONDS, err);
}

/* ---- this program and its folder ---- */

enum esp_status bench_rack_open(struct bench_rack *rack, struct error *err)
{
	*rack = (struct bench_rack){.lab = ""};
	ssize_t length = readlink("/proc/self/exe", rack->self, sizeof(rack->self) - 1);

	if (length <= 0 || length == (ssize_t)sizeof(rack->self) - 1)
		return error_set(err, ESP_EIO, "cannot find out which program this is");
	snprintf(rack->folder, sizeof(rack->folder), "/tmp/espalier-bench-XXXXXX");
	if (mkdtemp(rack->folder))
		return ESP_OK;
	rack->folder[0] = '\0';
	return error_set(err, ESP_EIO, "cannot make a temporary folder");
}

static void remove_folder(struct bench_rack *rack)
{
	char path[RACK_PATH];
	DIR *folder = opendir(rack->folder);

	for (struct dirent *entry; folder && (entry = readdir(folder));)
		unlink(bench_rack_path(rack, entry->d_name, path));
	if (folder)
		closedir(folder);
	rmdir(rack->folder);
	rack->folder[0] = '\0';
}

void bench_rack_close(struct bench_rack *rack)
{
	struct child_words words;
	struct error err;

	bench_child_ignore_signals();
	if (rack->lab[0]) {
		bench_rack_begin(rack, &words, false);
		bench_child_add_all(&words, (const char *const[]){"lab", "down", "--name", rack->lab, NULL});
		(void)!bench_child_do(&words, RACK_SETUP_SECONDS, &err);
		rack->lab[0] = '\0';
	}
	if (rack->folder[0])
		remove_folder(rack);
}
