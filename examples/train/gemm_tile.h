/*
 * gemm_tile.h - the innermost loops of gemm.c.
 *
 * Included once per kind of CPU, with TILE_NAME and TILE_TARGET defined: the compiler has to see the whole loop
 * under one target to keep the twelve vectors in registers.
 */

/* c[0..3][0..15] += a[0..3][0..k-1] * panel[0..k-1][0..15] */
TILE_TARGET static void TILE_NAME(float *c, size_t n, struct matrix a, const float *panel, size_t k)
{
	float *r0 = c, *r1 = c + n, *r2 = c + 2 * n, *r3 = c + 3 * n;
	const float *a0 = a.at, *a1 = a0 + a.row, *a2 = a1 + a.row, *a3 = a2 + a.row;
	vector c00 = LOAD(r0), c01 = LOAD(r0 + 8);
	vector c10 = LOAD(r1), c11 = LOAD(r1 + 8);
	vector c20 = LOAD(r2), c21 = LOAD(r2 + 8);
	vector c30 = LOAD(r3), c31 = LOAD(r3 + 8);
	for (size_t i = 0; i < k; i++) {
		size_t at = i * a.column;
		vector b0 = LOAD(panel + i * TILE_COLUMNS), b1 = LOAD(panel + i * TILE_COLUMNS + 8);
		c00 += a0[at] * b0;
		c01 += a0[at] * b1;
		c10 += a1[at] * b0;
		c11 += a1[at] * b1;
		c20 += a2[at] * b0;
		c21 += a2[at] * b1;
		c30 += a3[at] * b0;
		c31 += a3[at] * b1;
	}
	LOAD(r0) = c00;
	LOAD(r0 + 8) = c01;
	LOAD(r1) = c10;
	LOAD(r1 + 8) = c11;
	LOAD(r2) = c20;
	LOAD(r2 + 8) = c21;
	LOAD(r3) = c30;
	LOAD(r3 + 8) = c31;
}
