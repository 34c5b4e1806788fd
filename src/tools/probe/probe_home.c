#include "tools/probe/probe_home.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/outfile.h"
#include "report/complain.h"

#define MARK '\x1e'
#define PIECE 4000u /* bytes per line, two digits each: far below RUN_LINE_MAX */

#define BAR_MOST 79u /* columns: a longer bar would not stay on its line */

static const char digits[] = "0123456789abcdef";

/* ---- the sending end: a rank ---- */

void probe_tool_home_send(enum home_file which, const char *text, size_t length, FILE *to)
{
	fprintf(to, "%cB%d\n", MARK, (int)which);
	for (size_t at = 0; at < length; at += PIECE) {
		size_t end = length - at < PIECE ? length : at + PIECE;
		fprintf(to, "%cF%d", MARK, (int)which);
		for (size_t i = at; i < end; i++) {
			unsigned char byte = (unsigned char)text[i];
			fputc(digits[byte >> 4], to);
			fputc(digits[byte & 15], to);
		}
		fputc('\n', to);
	}
	fprintf(to, "%cE%d\n", MARK, (int)which);
}

void probe_tool_home_send_end(bool is_good, FILE *to)
{
	fprintf(to, "%cD%d\n", MARK, is_good);
	fflush(to);
}

void probe_tool_home_send_progress(const char *line, FILE *to)
{
	fprintf(to, "%cP%s\n", MARK, line);
	fflush(to);
}

/* ---- the receiving end: the process that started the ranks ---- */

void probe_tool_home_open(struct home *home, const struct probe_options *options, int terminal)
{
	*home = (struct home){.terminal = terminal};
	home->paths[HOME_MATRIX] = options->save_matrix;
	home->paths[HOME_TOPOLOGY] = options->out;
	home->paths[HOME_REPORT] = options->html;
}

static void drop(struct home_part *part)
{
	if (part->file)
		fclose(part->file);
	free(part->text);
	*part = (struct home_part){0};
}

static void drop_all(struct home *home)
{
	for (int i = 0; i < HOME_FILES; i++)
		drop(&home->parts[i]);
}

static void clear_bar(struct home *home)
{
	if (home->has_bar)
		dprintf(home->terminal, "\r\033[K");
	home->has_bar = false;
}

void probe_tool_home_close(struct home *home)
{
	clear_bar(home);
	drop_all(home);
}

void probe_tool_home_begin(struct home *home)
{
	drop_all(home);
	home->has_end = home->is_good = false;
}

static void draw_bar(struct home *home, const char *line, size_t length)
{
	if (home->terminal < 0)
		return;
	clear_bar(home);
	if (length > BAR_MOST)
		return;
	for (size_t i = 0; i < length; i++)
		/* the line comes from another host and goes to a terminal: no control characters */
		if (line[i] < ' ' || line[i] > '~')
			return;
	home->has_bar = length > 0;
	if (home->has_bar)
		dprintf(home->terminal, "%.*s", (int)length, line);
}

static int digit_of(char character)
{
	const char *at = memchr(digits, character, sizeof(digits) - 1);
	return at ? (int)(at - digits) : -1;
}

static void add_piece(struct home_part *part, const char *text, size_t length)
{
	if (!part->file) /* the file was not begun, or has ended */
		return;
	part->taken += length / 2;
	if (part->taken > HOME_FILE_MOST) {
		drop(part);
		return;
	}
	for (size_t i = 0; i + 1 < length; i += 2) {
		int high = digit_of(text[i]), low = digit_of(text[i + 1]);
		if (high < 0 || low < 0) {
			drop(part);
			return;
		}
		fputc(high << 4 | low, part->file);
	}
}

static void end_part(struct home_part *part)
{
	if (!part->file)
		return;
	bool is_good = ferror(part->file) == 0;
	part->is_whole = fclose(part->file) == 0 && is_good;
	part->file = NULL;
}

static void take_part_line(struct home *home, char kind, const char *text, size_t length)
{
	int which = length > 0 ? text[0] - '0' : -1;
	if (which < 0 || which >= HOME_FILES || !home->paths[which])
		return;
	struct home_part *part = &home->parts[which];
	if (kind == 'B') {
		drop(part);
		part->file = open_memstream(&part->text, &part->length);
	} else if (kind == 'F') {
		add_piece(part, text + 1, length - 1);
	} else if (kind == 'E') {
		end_part(part);
	}
}

bool probe_tool_home_take(struct home *home, const char *head, size_t head_length, const char *tail, size_t tail_length)
{
	size_t length = head_length + tail_length;
	char first = head_length ? head[0] : tail_length ? tail[0] : '\0';

	if (first != MARK || length < 2) {
		clear_bar(home);
		return false;
	}
	char *line = malloc(length);
	if (!line)
		return true; /* the file will be incomplete */
	memcpy(line, head, head_length);
	memcpy(line + head_length, tail, tail_length);
	if (line[1] == 'P') {
		draw_bar(home, line + 2, length - 2);
	} else if (line[1] == 'D') {
		home->has_end = true;
		home->is_good = length == 3 && line[2] == '1';
	} else {
		take_part_line(home, line[1], line + 2, length - 2);
	}
	free(line);
	return true;
}

static int write_part(const struct home_part *part, const char *path)
{
	struct outfile file;
	struct error err = {0};

	if (outfile_open(&file, path, &err) != ESP_OK)
		return complain("probe: %s", err.text);
	fwrite(part->text, 1, part->length, file.file);
	return outfile_commit(&file, &err) == ESP_OK ? EXIT_OK : complain("probe: %s", err.text);
}

static int write_one(const struct home_part *part, const char *path, bool is_missed)
{
	if (part->is_whole)
		return write_part(part, path);
	if (path && is_missed)
		return complain("probe: %s is not written: it has not come from the hosts; do they have this release?", path);
	return EXIT_OK;
}

int probe_tool_home_write(struct home *home, bool is_all)
{
	int status = EXIT_OK;

	clear_bar(home);
	for (int i = 0; i < HOME_FILES; i++)
		if (write_one(&home->parts[i], home->paths[i], is_all) != EXIT_OK)
			status = EXIT_NO;
	return status;
}
