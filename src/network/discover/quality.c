#include "network/discover/quality.h"

#include <math.h>
#include <stdlib.h>

/* ---- physical affinity ---- */

double discover_quality_paia(const struct matrix *measured, const struct racks *truth, uint64_t *out_triplets)
{
	uint64_t judged = 0, right = 0;

	for (uint32_t c = 0; c < measured->size; c++) {
		for (uint32_t a = 0; a < measured->size; a++) {
			double to_a = matrix_get(measured, c, a);

			if (a == c || isnan(to_a))
				continue;
			uint32_t near_a = racks_common(truth, a, c);
			for (uint32_t b = 0; b < a; b++) {
				double to_b = matrix_get(measured, c, b);
				uint32_t near_b = b == c ? near_a : racks_common(truth, b, c);

				if (near_a == near_b || isnan(to_b))
					continue;
				judged++;
				right += near_a > near_b ? to_a < to_b : to_b < to_a;
			}
		}
	}
	if (out_triplets)
		*out_triplets = judged;
	return judged > 0 ? (double)right / (double)judged : NAN;
}

/* ---- mutual information ---- */

/* The contingency table of two groupings. */
struct meeting {
	uint32_t nodes;
	uint32_t rows, columns;
	uint32_t *row, *column; /* sizes of the groups */
	uint32_t *both;         /* nodes in both: rows * columns */
	double *log_factorial;  /* of 0 .. nodes */
	uint32_t *scratch;      /* zeros: twice rows, twice columns, nodes + 1 */
};

static double entropy(const uint32_t *sizes, uint32_t count, uint32_t nodes)
{
	double sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum -= (double)sizes[i] / nodes * log((double)sizes[i] / nodes);
	return sum;
}

/* The term of a group of a nodes and one of b nodes with n in common. */
static double share(const struct meeting *meeting, uint32_t a, uint32_t b, uint32_t n)
{
	double nodes = meeting->nodes;

	return n / nodes * log(nodes * n / ((double)a * b));
}

static double information(const struct meeting *meeting)
{
	double sum = 0;

	for (uint32_t i = 0; i < meeting->rows; i++) {
		for (uint32_t j = 0; j < meeting->columns; j++) {
			uint32_t n = meeting->both[(size_t)i * meeting->columns + j];

			sum += n > 0 ? share(meeting, meeting->row[i], meeting->column[j], n) : 0;
		}
	}
	return sum;
}

/* The expected term of two groups of these sizes with random members: n is hypergeometric. */
static double expected_share(const struct meeting *meeting, uint32_t a, uint32_t b)
{
	const double *log_factorial = meeting->log_factorial;
	uint32_t nodes = meeting->nodes, most = a < b ? a : b;
	uint32_t n = (uint64_t)a + b > nodes ? a + b - nodes : 1;
	double whole = log_factorial[a] + log_factorial[b] + log_factorial[nodes - a] + log_factorial[nodes - b] -
	               log_factorial[nodes];
	double sum = 0;

	for (; n <= most; n++) {
		double chance = whole - log_factorial[n] - log_factorial[a - n] - log_factorial[b - n] -
		                log_factorial[nodes - a - b + n];

		sum += share(meeting, a, b, n) * exp(chance);
	}
	return sum;
}

/* The distinct sizes and their counts, as many groups have the same size; returns their number. */
static uint32_t distinct(const uint32_t *list, uint32_t count, uint32_t *often, uint32_t *sizes, uint32_t *counts)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++)
		often[list[i]]++;
	for (uint32_t i = 0; i < count; i++) {
		if (often[list[i]] == 0)
			continue;
		sizes[found] = list[i];
		counts[found++] = often[list[i]];
		often[list[i]] = 0;
	}
	return found;
}

static double expected_information(const struct meeting *meeting)
{
	uint32_t *row_sizes = meeting->scratch, *row_counts = row_sizes + meeting->rows;
	uint32_t *column_sizes = row_counts + meeting->rows, *column_counts = column_sizes + meeting->columns;
	uint32_t *often = column_counts + meeting->columns; /* zeros before and after each use */
	uint32_t rows = distinct(meeting->row, meeting->rows, often, row_sizes, row_counts);
	uint32_t columns = distinct(meeting->column, meeting->columns, often, column_sizes, column_counts);
	double sum = 0;

	for (uint32_t i = 0; i < rows; i++) {
		for (uint32_t j = 0; j < columns; j++)
			sum += (double)row_counts[i] * column_counts[j] * expected_share(meeting, row_sizes[i], column_sizes[j]);
	}
	return sum;
}

static double adjusted(const struct meeting *meeting)
{
	double row = entropy(meeting->row, meeting->rows, meeting->nodes);
	double column = entropy(meeting->column, meeting->columns, meeting->nodes);
	double expected = expected_information(meeting), most = fmax(row, column);

	/*
	 * One group each, or all nodes alone in both: these are equal and were handled before. So the denominator
	 * is positive.
	 */
	return (information(meeting) - expected) / (most - expected);
}

double discover_quality_ami(const struct grouping *a, const struct grouping *b)
{
	struct meeting meeting = {.nodes = a->nodes, .rows = a->count, .columns = b->count};
	double result = NAN;

	if (grouping_equal(a, b))
		return 1;
	meeting.row = calloc(a->count, sizeof(*meeting.row));
	meeting.column = calloc(b->count, sizeof(*meeting.column));
	meeting.both = calloc((size_t)a->count * b->count, sizeof(*meeting.both));
	meeting.log_factorial = calloc((size_t)a->nodes + 1, sizeof(*meeting.log_factorial));
	meeting.scratch = calloc(2 * ((size_t)a->count + b->count) + a->nodes + 1, sizeof(*meeting.scratch));
	if (meeting.row && meeting.column && meeting.both && meeting.log_factorial && meeting.scratch) {
		grouping_sizes(a, meeting.row);
		grouping_sizes(b, meeting.column);
		for (uint32_t node = 0; node < a->nodes; node++)
			meeting.both[(size_t)a->group_of[node] * b->count + b->group_of[node]]++;
		for (uint32_t i = 2; i <= a->nodes; i++)
			meeting.log_factorial[i] = meeting.log_factorial[i - 1] + log(i);
		result = adjusted(&meeting);
	}
	free(meeting.row);
	free(meeting.column);
	free(meeting.both);
	free(meeting.log_factorial);
	free(meeting.scratch);
	return result;
}
