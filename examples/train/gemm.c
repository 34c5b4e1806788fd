/*
 * gemm.c - c in tiles of 4 x 16, which stay in registers while the inner length goes by.
 *
 *            panel: 16 columns of b, copied so that they lie together and stay in the first cache
 *                 |
 *     a, 4 rows --+--> tile of c
 */
#include "gemm.h"

#include <string.h>

#define TILE_ROWS 4
#define TILE_COLUMNS 16
#define PANEL_ROWS 256 /* 16 KiB: half of the first cache */

/* Eight floats anywhere in memory; on CPUs with narrower vectors the compiler takes two or eight steps. */
typedef float vector __attribute__((vector_size(32), aligned(4), may_alias));
#define LOAD(place) (*(vector *)(place))

typedef void tile_fn(float *c, size_t n, struct matrix a, const float *panel, size_t k);

#define TILE_NAME tile_portable
#define TILE_TARGET
#include "gemm_tile.h"
#undef TILE_NAME
#undef TILE_TARGET

#if defined(__x86_64__)
#define TILE_NAME tile_avx2
#define TILE_TARGET __attribute__((target("avx2")))
#include "gemm_tile.h"
#endif

static tile_fn *best_tile(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return tile_avx2;
#endif
	return tile_portable;
}

/* Any part of c that is no whole tile. */
static void corner(float *c, size_t n, struct matrix a, const float *panel, size_t rows, size_t k, size_t columns)
{
	for (size_t i = 0; i < rows; i++) {
		for (size_t j = 0; j < columns; j++) {
			float sum = c[i * n + j];
			for (size_t l = 0; l < k; l++)
				sum += a.at[i * a.row + l * a.column] * panel[l * TILE_COLUMNS + j];
			c[i * n + j] = sum;
		}
	}
}

static void pack(float *panel, struct matrix b, size_t k, size_t columns)
{
	for (size_t i = 0; i < k; i++)
		for (size_t j = 0; j < columns; j++)
			panel[i * TILE_COLUMNS + j] = b.at[i * b.row + j * b.column];
}

/* One panel of b with all rows of a. */
static void columns_of_c(float *c, struct matrix a, const float *panel, size_t m, size_t k, size_t n, size_t columns)
{
	tile_fn *tile = best_tile();
	for (size_t i = 0; i < m; i += TILE_ROWS) {
		size_t rows = m - i < TILE_ROWS ? m - i : TILE_ROWS;
		struct matrix strip = {a.at + i * a.row, a.row, a.column};
		if (rows == TILE_ROWS && columns == TILE_COLUMNS)
			tile(c + i * n, n, strip, panel, k);
		else
			corner(c + i * n, n, strip, panel, rows, k, columns);
	}
}

void gemm(float *c, struct matrix a, struct matrix b, size_t m, size_t k, size_t n)
{
	_Alignas(64) float panel[PANEL_ROWS * TILE_COLUMNS];
	memset(c, 0, m * n * sizeof c[0]);
	for (size_t l = 0; l < k; l += PANEL_ROWS) {
		size_t depth = k - l < PANEL_ROWS ? k - l : PANEL_ROWS;
		struct matrix slice = {a.at + l * a.column, a.row, a.column};
		for (size_t j = 0; j < n; j += TILE_COLUMNS) {
			size_t columns = n - j < TILE_COLUMNS ? n - j : TILE_COLUMNS;
			struct matrix part = {b.at + l * b.row + j * b.column, b.row, b.column};
			pack(panel, part, depth, columns);
			columns_of_c(c + j, slice, panel, m, depth, n, columns);
		}
	}
}
