#include "hub/layout.h"

#include "base/check.h"
#include "base/rng.h"

#define TENSORS 40u

static uint32_t draw_tensors(struct rng *rng, struct layout_tensor *out)
{
	uint32_t count = (uint32_t)rng_below(rng, TENSORS) + 1;

	for (uint32_t t = 0; t < count; t++) {
		uint64_t elements = rng_chance(rng, 1, 8) ? 0 : rng_below(rng, rng_chance(rng, 1, 4) ? 20000 : 100);
		out[t] = (struct layout_tensor){.name = rng_next(rng), .elements = elements, .type = ESP_F32,
		                                .group = (uint16_t)rng_below(rng, 3)};
	}
	return count;
}

/* Chunks of a tensor follow each other, all but the last as long as they may be. */
static void check_tensor(const struct hub_layout *layout, uint32_t t, uint32_t *chunk, uint64_t *end)
{
	const struct layout_place *place = &layout->place[t];
	uint64_t elements = 0;

	CHECK(place->at % LAYOUT_ALIGN == 0 && place->at >= *end && place->at < *end + LAYOUT_ALIGN);
	CHECK_U64(place->first_chunk, *chunk);
	for (uint32_t i = 0; i < place->chunks; i++, (*chunk)++) {
		const struct layout_chunk *cut = &layout->chunk[*chunk];

		CHECK(cut->tensor == t && cut->at == place->at + elements && cut->elements > 0);
		CHECK(cut->elements == layout->chunk_elements || i + 1 == place->chunks);
		CHECK(cut->elements <= layout->chunk_elements && cut->lane < layout->lanes);
		elements += cut->elements;
	}
	CHECK_U64(elements, layout->tensor[t].elements);
	*end = place->at + elements;
}

/* Each chunk stands once in the list of its lane, in ascending order, and loads differ by a chunk at the most. */
static void check_lanes(const struct hub_layout *layout)
{
	uint64_t least = UINT64_MAX, most = 0;

	CHECK_U64(layout->lane_first[0], 0);
	CHECK_U64(layout->lane_first[layout->lanes], layout->chunks);
	for (uint32_t lane = 0; lane < layout->lanes; lane++) {
		uint64_t load = 0;

		for (uint32_t i = layout->lane_first[lane]; i < layout->lane_first[lane + 1]; i++) {
			uint32_t chunk = layout->lane_chunks[i];

			CHECK(layout->chunk[chunk].lane == lane);
			CHECK_U64(layout->lane_at[chunk], i - layout->lane_first[lane]);
			CHECK(i == layout->lane_first[lane] || layout->lane_chunks[i - 1] < chunk);
			load += layout->chunk[chunk].elements;
		}
		least = load < least ? load : least;
		most = load > most ? load : most;
	}
	CHECK(most - least <= layout->chunk_elements);
}

static void test_cut(struct rng *rng)
{
	struct layout_tensor tensors[TENSORS];
	uint32_t count = draw_tensors(rng, tensors), chunk = 0, groups = 0;
	uint32_t chunk_bytes = (uint32_t)rng_below(rng, 32) * 64 + LAYOUT_CHUNK_LEAST;
	uint32_t lanes = (uint32_t)rng_below(rng, 8) + 1;
	uint64_t end = 0;
	struct hub_layout layout, again;
	struct error err;

	CHECK(hub_layout_make(tensors, count, chunk_bytes, lanes, &layout, &err) == ESP_OK);
	CHECK(layout.tensors == count && layout.lanes == lanes);
	CHECK_U64(layout.chunk_elements, chunk_bytes / 4);
	for (uint32_t t = 0; t < count; t++) {
		CHECK(layout.tensor[t].name == tensors[t].name && layout.tensor[t].group == tensors[t].group);
		check_tensor(&layout, t, &chunk, &end);
		groups = tensors[t].group >= groups ? tensors[t].group + 1u : groups;
	}
	CHECK(layout.chunks == chunk && layout.groups == groups);
	CHECK(layout.elements >= end && layout.elements < end + LAYOUT_ALIGN && layout.elements % LAYOUT_ALIGN == 0);
	check_lanes(&layout);

	CHECK(hub_layout_make(tensors, count, chunk_bytes, lanes, &again, NULL) == ESP_OK);
	CHECK(hub_layout_digest(&again, 0) == hub_layout_digest(&layout, 0));
	hub_layout_fini(&again);
	hub_layout_fini(&layout);
}

/* The layout of a hub agrees with the workers'; its memory is for its own chunks, which do not overlap. */
static uint64_t check_hub(const struct hub_layout *all, const struct hub_layout *own)
{
	uint64_t end = 0, load = 0;
	uint32_t first = all->hub_first[own->own], lanes = all->hub_first[own->own + 1] - first;

	CHECK(own->lanes == lanes && own->chunks == all->chunks && own->tensors == all->tensors);
	CHECK(hub_layout_digest(own, own->own) == hub_layout_digest(all, own->own));
	for (uint32_t c = 0; c < all->chunks; c++) {
		uint32_t lane = (uint32_t)all->chunk[c].lane - first;

		CHECK(own->chunk[c].elements == all->chunk[c].elements && own->chunk[c].tensor == all->chunk[c].tensor);
		CHECK_U64(own->chunk[c].lane, lane < lanes ? lane : LAYOUT_NO_LANE);
		if (lane >= lanes)
			continue;
		CHECK(own->chunk[c].at >= end && own->chunk[c].at % LAYOUT_ALIGN == 0);
		CHECK(own->lane_chunks[own->lane_first[lane] + own->lane_at[c]] == c);
		end = own->chunk[c].at + own->chunk[c].elements;
		load += own->chunk[c].elements;
	}
	CHECK(own->elements >= end && own->elements < end + LAYOUT_ALIGN);
	return load;
}

/* Hubs with lanes of their own share the chunks out: each chunk has one, and loads differ by a chunk at the most. */
static void test_hubs(struct rng *rng)
{
	struct layout_tensor tensors[TENSORS];
	uint32_t count = draw_tensors(rng, tensors), hubs = (uint32_t)rng_below(rng, 5) + 1, lanes[5];
	uint64_t least = UINT64_MAX, most = 0, sum = 0, elements = 0;
	struct layout_split split = {.hubs = hubs, .own = LAYOUT_ALL_HUBS, .lanes = lanes};
	struct hub_layout all, own;

	for (uint32_t i = 0; i < hubs; i++)
		lanes[i] = (uint32_t)rng_below(rng, 4) + 1;
	CHECK(hub_layout_split(tensors, count, LAYOUT_CHUNK_LEAST, &split, &all, NULL) == ESP_OK);
	for (split.own = 0; split.own < hubs; split.own++) {
		CHECK(hub_layout_split(tensors, count, LAYOUT_CHUNK_LEAST, &split, &own, NULL) == ESP_OK);
		uint64_t load = check_hub(&all, &own);

		least = load < least ? load : least;
		most = load > most ? load : most;
		sum += load;
		hub_layout_fini(&own);
	}
	for (uint32_t t = 0; t < count; t++)
		elements += tensors[t].elements;
	CHECK_U64(sum, elements);
	CHECK(most - least <= all.chunk_elements);
	hub_layout_fini(&all);
}

static uint64_t digest_of(const struct layout_tensor *tensors, uint32_t count, uint32_t chunk_bytes, uint32_t lanes)
{
	struct hub_layout layout;

	CHECK(hub_layout_make(tensors, count, chunk_bytes, lanes, &layout, NULL) == ESP_OK);
	uint64_t digest = hub_layout_digest(&layout, 0);
	hub_layout_fini(&layout);
	return digest;
}

/* Layouts that differ in one thing have different digests. */
static void test_digest(void)
{
	const struct layout_tensor plain[2] = {{1, 1000, ESP_F32, 0}, {2, 500, ESP_F32, 1}};
	struct layout_tensor other[2];
	uint64_t digests[8] = {digest_of(plain, 2, 1024, 2), digest_of(plain, 1, 1024, 2), digest_of(plain, 2, 2048, 2),
	                       digest_of(plain, 2, 1024, 3)};

	for (int i = 4; i < 8; i++) {
		memcpy(other, plain, sizeof(plain));
		other[1].name += i == 4;
		other[1].elements += i == 5;
		other[1].group = i == 6 ? 0 : 1;
		if (i == 7) {
			other[0] = plain[1];
			other[1] = plain[0];
		}
		digests[i] = digest_of(other, 2, 1024, 2);
	}
	for (int i = 0; i < 8; i++) {
		for (int j = 0; j < i; j++)
			CHECK_MSG(digests[i] != digests[j], "digests %d and %d are equal", i, j);
	}
}

/* The numbers that are told before a layout is made hold of it. */
static void test_measure(void)
{
	const struct layout_tensor tensors[2] = {{1, 100001, ESP_F32, 0}, {2, 77, ESP_F16, 1}};
	struct hub_layout layout;
	uint64_t elements, bytes;
	struct error err;

	CHECK(hub_layout_measure(tensors, 2, 1024, &elements, &bytes, &err) == ESP_OK);
	CHECK(hub_layout_make(tensors, 2, 1024, 3, &layout, &err) == ESP_OK);
	CHECK(elements == layout.elements);
	CHECK(bytes >= layout.chunks * (sizeof(*layout.chunk) + 2 * sizeof(*layout.lane_at)));
	hub_layout_fini(&layout);
	CHECK(hub_layout_measure(tensors, 2, 1000, &elements, &bytes, &err) == ESP_EINVAL);
}

static void check_refused(const struct layout_tensor *tensors, uint32_t count, uint32_t chunk_bytes, uint32_t lanes,
                          enum esp_status expected, const char *word)
{
	struct hub_layout layout;
	struct error err;

	CHECK(hub_layout_make(tensors, count, chunk_bytes, lanes, &layout, &err) == expected);
	CHECK_MSG(err.status == expected && strstr(err.text, word), "\"%s\" does not say \"%s\"", err.text, word);
}

static void test_refused(void)
{
	struct layout_tensor tensors[3] = {{1, 10, ESP_F32, 0}, {2, 10, ESP_F32, 0}, {3, 10, ESP_F32, 0}};

	check_refused(tensors, 3, 192, 1, ESP_EINVAL, "192");
	check_refused(tensors, 3, 300, 1, ESP_EINVAL, "300");
	check_refused(tensors, 3, LAYOUT_CHUNK_MOST + 64, 1, ESP_EINVAL, "bytes");
	check_refused(tensors, 3, 1024, 0, ESP_EINVAL, "0 lanes");
	check_refused(tensors, 3, 1024, LAYOUT_LANES_MOST + 1, ESP_EINVAL, "65 lanes");
	check_refused(tensors, LAYOUT_TENSORS_MOST + 1, 1024, 1, ESP_ELIMIT, "65537 tensors");
	tensors[2].name = 1;
	check_refused(tensors, 3, 1024, 1, ESP_EINVAL, "two tensors");
	tensors[2] = (struct layout_tensor){3, 10, ESP_F64, 0};
	check_refused(tensors, 3, 1024, 1, ESP_EINVAL, "tensor 2");
	tensors[2] = (struct layout_tensor){3, UINT64_MAX, ESP_F32, 0};
	check_refused(tensors, 3, 1024, 1, ESP_ELIMIT, "tensor 2");
	tensors[2].elements = LAYOUT_ELEMENTS_MOST - 31;
	check_refused(tensors, 3, LAYOUT_CHUNK_MOST, 1, ESP_ELIMIT, "tensor 2");
	tensors[2].elements = UINT64_C(64) * LAYOUT_CHUNKS_MOST;
	check_refused(tensors, 3, LAYOUT_CHUNK_LEAST, 1, ESP_ELIMIT, "chunks");
}

/* No tensor, and tensors without elements, have no chunks. */
static void test_empty(void)
{
	const struct layout_tensor tensors[2] = {{1, 0, ESP_F32, 0}, {2, 0, ESP_F32, 4}};
	struct hub_layout layout;

	CHECK(hub_layout_make(NULL, 0, LAYOUT_CHUNK_BYTES, 3, &layout, NULL) == ESP_OK);
	CHECK(layout.chunks == 0 && layout.elements == 0 && layout.groups == 0);
	hub_layout_fini(&layout);
	CHECK(hub_layout_make(tensors, 2, LAYOUT_CHUNK_BYTES, 3, &layout, NULL) == ESP_OK);
	CHECK(layout.chunks == 0 && layout.elements == 0 && layout.groups == 5 && layout.lane_first[3] == 0);
	hub_layout_fini(&layout);
	hub_layout_fini(&layout); /* zeroed now */
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	for (int i = 0; i < 2000; i++)
		test_cut(&rng);
	for (int i = 0; i < 2000; i++)
		test_hubs(&rng);
	test_digest();
	test_measure();
	test_refused();
	test_empty();
	return 0;
}
