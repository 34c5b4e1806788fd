#include "tools/launcher/launcher_shell.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_TEXT 12 /* the first line: the number of lines that follow */

/*
 * `read`, unlike `sh -s`, never consumes more of the input than its line. In a multibyte locale bash takes a
 * line's end for a part of an incomplete character; not in C.
 */
const char run_shell_bootstrap[] =
	"exec /bin/sh -c '"
	"esp_end=$(printf \"\\nx\"); esp_end=${esp_end%x}; esp_text=; read -r esp_left || exit 255; "
	"while [ \"$esp_left\" -gt 0 ]; do "
	"IFS= LC_ALL=C read -r esp_line || exit 255; esp_text=\"$esp_text$esp_line$esp_end\"; esp_left=$((esp_left-1)); "
	"done; "
	"eval \"$esp_text\"'";

/*
 * Follows the variables, `cd` and `set -- COMMAND`. Three parts send lines to descriptor 4:
 *     the listener: signals from our input as "signal WORD", and the end of the input as TERM and KILL;
 *     LOOK N among them: most other ranks are done, so this one is killed if checks in
 *     more than N different seconds found it stopped;
 *     the command: first its pid, and at its end its status;
 *     the reader carries them out.
 * The command is not in the background, as a shell makes background commands ignore SIGINT. 5 and 6 are the
 * rank's own output; messages of the shells ("Killed") are dropped.
 */
static const char supervisor[] =
	"exec 3<&0 5>&1 6>&2 </dev/null >/dev/null 2>&1\n"
	"{\n"
	"\t{\n"
	"\t\twhile read -r word number; do\n"
	"\t\t\tif [ \"$word\" = LOOK ]; then echo \"look $number\" >&4; else echo \"signal $word\" >&4; fi\n"
	"\t\tdone\n"
	"\t\techo 'signal TERM' >&4; sleep 2; echo 'signal KILL' >&4\n"
	"\t} <&3 3<&- 5>&- 6>&- &\n"
	"\tesp_listener=$!\n"
	"\t(exec setsid /bin/sh -c 'echo \"pid $$\" >&4; exec 4>&-; exec \"$@\"' espalier \"$@\" >&5 2>&6 3<&- 5>&- 6>&-)\n"
	"\tesp_status=$?\n"
	"\tkill \"$esp_listener\"\n"
	"\techo \"end $esp_status\" >&4\n"
	"} 4>&1 | {\n"
	"\texec 3<&- 5>&- 6>&-\n"
	"\tpid= early= status=255 still=0 last=\n"
	/* Any process of the group counts, as the rank may run under a wrapper. */
	"\tis_stopped() {\n"
	"\t\tfor file in /proc/[0-9]*/stat; do\n"
	"\t\t\tread -r line <\"$file\" || continue\n"
	"\t\t\tset -- ${line##*) }\n"
	"\t\t\t[ \"$1\" != T ] || [ \"$3\" != \"$pid\" ] || return 0\n"
	"\t\tdone\n"
	"\t\treturn 1\n"
	"\t}\n"
	/* Requests that were delayed arrive at once: those of one second count as one check. */
	"\tlook() {\n"
	"\t\tread -r now rest </proc/uptime || return\n"
	"\t\t[ \"$pid\" ] && is_stopped || { still=0; last=; return; }\n"
	"\t\t[ \"${now%%.*}\" = \"$last\" ] || still=$((still+1))\n"
	"\t\tlast=${now%%.*}\n"
	"\t\t[ \"$still\" -le \"$1\" ] || kill -s KILL -- \"-$pid\"\n"
	"\t}\n"
	"\twhile read -r what value; do\n"
	"\t\tcase $what in\n"
	"\t\tlook) look \"$value\" ;;\n"
	"\t\tpid) pid=$value; [ -z \"$early\" ] || kill -s \"$early\" -- \"-$pid\" ;;\n"
	"\t\tsignal) if [ \"$pid\" ]; then kill -s \"$value\" -- \"-$pid\"; else early=$value; fi ;;\n"
	"\t\tend) status=$value; break ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	/* Processes that the command has left running get two seconds, SIGTERM, and two seconds later SIGKILL. */
	"\tturn=0\n"
	"\twhile [ \"$pid\" ] && [ \"$turn\" -lt 40 ] && kill -s 0 -- \"-$pid\"; do\n"
	"\t\t[ \"$turn\" -ne 20 ] || kill -s TERM -- \"-$pid\"\n"
	"\t\tsleep 0.1\n"
	"\t\tturn=$((turn+1))\n"
	"\tdone\n"
	"\t[ \"$turn\" -lt 40 ] || kill -s KILL -- \"-$pid\"\n"
	"\texit \"$status\"\n"
	"}\n";

enum esp_status launcher_shell_words(const char *rsh, char ***out, size_t *out_host, struct error *err)
{
	const char *text = rsh ? rsh : RUN_SHELL_DEFAULT;
	char **words = calloc(strlen(text) / 2 + 4, sizeof(char *));
	size_t count = 0;
	bool has_memory = words != NULL;
	for (text += strspn(text, " \t"); has_memory && *text; text += strspn(text, " \t")) {
		size_t length = strcspn(text, " \t");
		words[count] = strndup(text, length);
		has_memory = words[count++] != NULL;
		text += length;
	}
	if (has_memory && count > 0)
		has_memory = (words[count + 1] = strdup(run_shell_bootstrap)) != NULL;
	if (has_memory && count > 0) {
		*out = words;
		*out_host = count;
		return ESP_OK;
	}
	launcher_shell_words_free(words, count);
	return has_memory ? error_set(err, ESP_EINVAL, "--rsh: the command is empty")
	                  : error_set(err, ESP_ENOMEM, "no memory for the remote shell");
}

void launcher_shell_words_free(char **words, size_t host)
{
	for (size_t i = 0; words && i < host; i++)
		free(words[i]);
	if (words && host > 0)
		free(words[host + 1]);
	free(words);
}

void launcher_shell_quote(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out); /* close the quotes, an escaped one, open them again */
		else
			fputc(*text, out);
	}
	fputc('\'', out);
}

static void write_variables(FILE *out, char *const *words)
{
	/* The first would override the key that we send; the others are the bootstrap's. */
	fputs("unset ESP_KEY_FILE esp_end esp_text esp_left esp_line\n", out);
	for (; *words; words++) {
		int name = (int)strcspn(*words, "=");
		fprintf(out, "export %.*s=", name, *words);
		launcher_shell_quote(out, *words + name + 1);
		fputc('\n', out);
	}
}

/* A relative name gets ./ in front: `cd -` and CDPATH mean something else. */
static void write_folder(FILE *out, const struct run_shell_job *job)
{
	fputs(job->folder[0] == '/' ? "cd -- " : "cd -- ./", out);
	launcher_shell_quote(out, job->folder);
	fputs(" 2>/dev/null || { printf 'espalier: run: host %s has no folder %s; --cwd names another\\n' ", out);
	launcher_shell_quote(out, job->host);
	fputc(' ', out);
	launcher_shell_quote(out, job->folder);
	fputs(" >&2; exit 126; }\n", out);
}

static void write_script(FILE *out, const struct run_shell_job *job)
{
	write_variables(out, job->words);
	write_folder(out, job);
	fputs("set --", out);
	for (char *const *word = job->command; *word; word++) {
		fputc(' ', out);
		launcher_shell_quote(out, *word);
	}
	fputc('\n', out);
	fputs(supervisor, out);
}

static size_t count_lines(const char *text, size_t length)
{
	size_t count = 0;
	for (size_t i = 0; i < length; i++)
		count += text[i] == '\n';
	return count;
}

enum esp_status launcher_shell_script(const struct run_shell_job *job, char **out, size_t *out_length,
                                      struct error *err)
{
	char *text = NULL, head[COUNT_TEXT + 1];
	size_t length = 0;
	FILE *file = open_memstream(&text, &length);
	if (file) {
		fprintf(file, "%*s\n", COUNT_TEXT - 1, "");
		write_script(file, job);
	}
	if (!file || fclose(file) != 0) {
		free(text);
		return error_set(err, ESP_ENOMEM, "no memory for the script of a rank");
	}
	snprintf(head, sizeof(head), "%*zu", COUNT_TEXT - 1, count_lines(text, length) - 1);
	memcpy(text, head, COUNT_TEXT - 1);
	*out = text;
	*out_length = length;
	return ESP_OK;
}
