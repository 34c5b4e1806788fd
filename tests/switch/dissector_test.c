/*
 * The Wireshark dissector's table of fields against the packets that are written: read by the table, the fields of 10^4
 * headers are those that the decoder gives, and no byte is left out.
 *
 * switch_dissector_test LUA
 */
#include "base/check.h"
#include "base/rng.h"
#include "wire/atp_packet.h"

#define FIELDS_MOST 32u
#define PACKETS 10000u

struct field {
	char name[32];
	uint32_t at, bytes;
};

static uint32_t read_table(const char *path, struct field fields[FIELDS_MOST])
{
	FILE *file = fopen(path, "re");
	char line[256];
	uint32_t count = 0;

	CHECK_MSG(file, "cannot open %s", path);
	while (fgets(line, sizeof(line), file)) {
		struct field field;
		if (sscanf(line, "\t{\"%31[a-z_0-9]\", %u, %u},", field.name, &field.at, &field.bytes) != 3)
			continue;
		CHECK(count < FIELDS_MOST);
		fields[count++] = field;
	}
	fclose(file);
	return count;
}

static uint64_t read_field(const struct field *field, const uint8_t *bytes)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < field->bytes; i++)
		value |= (uint64_t)bytes[field->at + i] << (8 * i);
	return value;
}

static uint64_t decoded(const struct atp_packet *packet, const char *name)
{
	const struct {
		const char *name;
		uint64_t value;
	} values[] = {
		{"version", ATP_VERSION},          {"type", packet->type},         {"flags", packet->flags},
		{"hop", packet->hop},              {"sequence", packet->sequence}, {"flow", packet->flow},
		{"bitmap", packet->bitmap},        {"call", packet->call},         {"owner", packet->owner},
		{"group", packet->group},          {"fan_in_0", packet->fan_in[0]}, {"fan_in_1", packet->fan_in[1]},
		{"scale", packet->scale},          {"kind", packet->kind},         {"words", packet->words},
		{"next", packet->next},            {"tag", packet->tag},
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (strcmp(values[i].name, name) == 0)
			return values[i].value;
	CHECK_MSG(false, "the packet has no field %s", name);
	return 0;
}

static void check_whole(const struct field *fields, uint32_t count)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		CHECK_MSG(fields[i].at == at, "%s is at %u, not at %u", fields[i].name, fields[i].at, at);
		at += fields[i].bytes;
	}
	CHECK_U64(at, ATP_HEADER_BYTES);
}

int main(int argc, char **argv)
{
	struct field fields[FIELDS_MOST];
	uint8_t bytes[ATP_HEADER_BYTES];
	struct atp_packet packet;
	struct rng rng;

	CHECK(argc == 2);
	uint32_t count = read_table(argv[1], fields);
	check_whole(fields, count);
	rng_init(&rng, 1);
	for (uint32_t n = 0; n < PACKETS; n++) {
		for (uint32_t i = 1; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)rng_next(&rng);
		bytes[0] = ATP_VERSION;
		atp_header_get(bytes, &packet);
		for (uint32_t i = 0; i < count; i++)
			CHECK_MSG(read_field(&fields[i], bytes) == decoded(&packet, fields[i].name), "%s", fields[i].name);
	}
	return 0;
}
