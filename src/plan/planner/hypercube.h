/*
 * hypercube.h - the vertices of the largest hypercube among the nodes. Private to src/plan.
 *
 * With N = 2^k + r nodes, the first 2 r ranks share vertices in pairs: the even rank is the vertex, the odd
 * one, its guest, sends its part to it and gets the result from it. Vertices keep the order of ranks, so that
 * neighbours in low bits are neighbours in rank.
 */
#ifndef PLAN_PLANNER_HYPERCUBE_H
#define PLAN_PLANNER_HYPERCUBE_H

#include <stdbool.h>
#include <stdint.h>

struct hypercube {
	uint32_t vertices; /* 2^k */
	uint32_t pairs;    /* r   */
};

static inline struct hypercube hypercube_of(uint32_t nodes)
{
	uint32_t vertices = 1;

	while (vertices <= nodes / 2)
		vertices *= 2;
	return (struct hypercube){vertices, nodes - vertices};
}

/* True for the odd rank of a pair. */
static inline bool hypercube_is_guest(struct hypercube cube, uint32_t rank)
{
	return rank < 2 * cube.pairs && rank % 2 == 1;
}

/* The vertex of a rank; a guest has that of its host, rank - 1. */
static inline uint32_t hypercube_vertex(struct hypercube cube, uint32_t rank)
{
	return rank < 2 * cube.pairs ? rank / 2 : rank - cube.pairs;
}

static inline uint32_t hypercube_rank(struct hypercube cube, uint32_t vertex)
{
	return vertex < cube.pairs ? 2 * vertex : vertex + cube.pairs;
}

static inline bool hypercube_has_guest(struct hypercube cube, uint32_t rank)
{
	return rank < 2 * cube.pairs && rank % 2 == 0;
}

#endif
