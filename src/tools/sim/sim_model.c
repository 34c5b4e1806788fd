#include "tools/sim/sim_model.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quote.h"
#include "base/word.h"

#define SUFFIX ".json"

/*
 * Relative to the folder of the program: of espalier and espalier-study in a build folder, and of an installed
 * espalier.
 */
static const char *const places[] = {"data/models", "../data/models", "../share/espalier/models"};
#define PLACE_COUNT (sizeof places / sizeof places[0])

static bool ends_in_suffix(const char *name)
{
	size_t length = strlen(name);
	return length > sizeof SUFFIX - 1 && strcmp(name + length - (sizeof SUFFIX - 1), SUFFIX) == 0;
}

static bool find_folder(char path[PATH_MAX])
{
	char folder[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
	if (length > 0) {
		folder[length] = '\0';
		*strrchr(folder, '/') = '\0';
		for (size_t i = 0; i < PLACE_COUNT; i++)
			if (snprintf(path, PATH_MAX, "%s/%s", folder, places[i]) < PATH_MAX && access(path, X_OK) == 0)
				return true;
	}
	return snprintf(path, PATH_MAX, "%s", SIM_MODELS) < PATH_MAX && access(path, X_OK) == 0;
}

static int is_model(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && ends_in_suffix(entry->d_name);
}

char **sim_tool_model_names(void)
{
	char folder[PATH_MAX];
	struct dirent **entries = NULL;
	int count = find_folder(folder) ? scandir(folder, &entries, is_model, alphasort) : -1;
	char **names = count > 0 ? calloc((size_t)count + 1, sizeof(*names)) : NULL;
	for (int i = 0; i < count; i++) {
		if (names)
			names[i] = strndup(entries[i]->d_name, strlen(entries[i]->d_name) - (sizeof SUFFIX - 1));
		free(entries[i]);
	}
	free(entries);
	return names;
}

static const char *name_at(const void *list, size_t index)
{
	return ((char *const *)list)[index];
}

static enum esp_status unknown(const char *name, struct error *err)
{
	char shown[QUOTE_TEXT], all[160] = "";
	char **names = sim_tool_model_names();
	const char *near = names ? word_nearest(name, name_at, names) : NULL;
	size_t used = 0;
	for (size_t i = 0; names && names[i]; i++) {
		int more = snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
		used = (size_t)more < sizeof all - used ? used + (size_t)more : sizeof all - 1;
	}
	quote(name, strlen(name), shown);
	enum esp_status status =
		!names ? error_set(err, ESP_EINVAL, "there is no model %s: none is beside this command nor in %s; name a file",
		                   shown, SIM_MODELS)
		: near ? error_set(err, ESP_EINVAL, "there is no model %s; did you mean %s?", shown, near)
			   : error_set(err, ESP_EINVAL, "there is no model %s, but %s; a file has a slash in its name, or .json",
			               shown, all);
	for (size_t i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
	return status;
}

enum esp_status sim_tool_model_open(struct model *model, const char *name, const struct model_options *options,
                                    struct error *err)
{
	char folder[PATH_MAX], path[PATH_MAX];
	*model = (struct model){0};
	if (strchr(name, '/') || ends_in_suffix(name))
		return workload_model_load(model, name, options, err);
	if (!find_folder(folder) || snprintf(path, sizeof path, "%s/%s%s", folder, name, SUFFIX) >= PATH_MAX ||
	    access(path, F_OK) != 0)
		return unknown(name, err);
	return workload_model_load(model, path, options, err);
}
