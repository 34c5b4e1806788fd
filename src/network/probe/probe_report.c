#include "network/probe/probe_report.h"

#include <math.h>
#include <string.h>

#include "wire/bytes.h"

static void put_double(uint8_t *at, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bytes_put64(at, bits);
}

static double get_double(const uint8_t *at)
{
	uint64_t bits = bytes_get64(at);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

void probe_report_encode(const struct report_row *rows, uint32_t hosts, uint8_t *out)
{
	for (uint32_t i = 0; i < hosts; i++, out += REPORT_ROW_BYTES) {
		put_double(out, rows[i].rtt_low);
		put_double(out + 8, rows[i].rtt_median);
		put_double(out + 16, rows[i].rate_sum);
		put_double(out + 24, rows[i].rate_best);
		bytes_put64(out + 32, rows[i].received);
		bytes_put64(out + 40, rows[i].sent);
		bytes_put32(out + 48, rows[i].rtt_count);
		bytes_put32(out + 52, rows[i].rate_count);
	}
}

static bool is_within(double value, double most)
{
	return isfinite(value) && !signbit(value) && value <= most;
}

static bool makes_sense(const struct report_row *row)
{
	if (!is_within(row->rtt_low, REPORT_RTT_MAX) || !is_within(row->rtt_median, REPORT_RTT_MAX) ||
	    row->rtt_low > row->rtt_median)
		return false;
	if ((row->rtt_count == 0) != (row->rtt_median == 0) || (row->rtt_count > 0 && row->rtt_low == 0))
		return false;
	if (!is_within(row->rate_best, REPORT_RATE_MAX) || !is_within(row->rate_sum, REPORT_RATE_MAX * row->rate_count))
		return false;
	if (row->rate_best > row->rate_sum || (row->rate_best == 0 && row->rate_sum > 0))
		return false;
	return row->received <= REPORT_BYTES_MAX && row->sent <= REPORT_BYTES_MAX;
}

static void decode_row(const uint8_t *in, struct report_row *out)
{
	*out = (struct report_row){
		.rtt_low = get_double(in),
		.rtt_median = get_double(in + 8),
		.rate_sum = get_double(in + 16),
		.rate_best = get_double(in + 24),
		.received = bytes_get64(in + 32),
		.sent = bytes_get64(in + 40),
		.rtt_count = bytes_get32(in + 48),
		.rate_count = bytes_get32(in + 52),
	};
}

static bool is_all_zero(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i])
			return false;
	return true;
}

bool probe_report_decode(const uint8_t *bytes, uint32_t hosts, uint32_t self, struct report_row *out)
{
	struct report_row row;

	for (uint32_t i = 0; i < hosts; i++) {
		decode_row(bytes + (size_t)i * REPORT_ROW_BYTES, &row);
		if (!makes_sense(&row) || (i == self && !is_all_zero(bytes + (size_t)i * REPORT_ROW_BYTES, REPORT_ROW_BYTES)))
			return false;
	}
	for (uint32_t i = 0; i < hosts; i++)
		decode_row(bytes + (size_t)i * REPORT_ROW_BYTES, &out[i]);
	return true;
}
