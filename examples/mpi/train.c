/*
 * train.c - a plain MPI program: all ranks train one small network, each on points of its own.
 *
 * It knows nothing of Espalier. README.md says how to run it with and without libespalier-mpi.so. The network tells points within
 * a ring from those outside: two inputs, HIDDEN units, one output. Every rank computes the gradient of its points, MPI_Allreduce adds
 * them up, and all take the same step.
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { HIDDEN = 24, POINTS = 500, STEPS = 400, WEIGHTS = 4 * HIDDEN + 1 };

/* w[0..2] of each hidden unit: its inputs and bias; then the output's weight of each; then the output's bias. */
struct model {
	double w[WEIGHTS];
};

static double random_unit(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 11) / 9007199254740992.0;
}

static double forward(const struct model *model, const double point[2], double hidden[HIDDEN])
{
	double sum = model->w[4 * HIDDEN];

	for (int i = 0; i < HIDDEN; i++) {
		const double *w = &model->w[3 * i];

		hidden[i] = tanh(w[0] * point[0] + w[1] * point[1] + w[2]);
		sum += model->w[3 * HIDDEN + i] * hidden[i];
	}
	return 1 / (1 + exp(-sum));
}

/* Adds one point's gradient; returns its loss. */
static double backward(const struct model *model, const double point[2], double wanted, struct model *gradient)
{
	double hidden[HIDDEN], said = forward(model, point, hidden), slope = said - wanted;

	for (int i = 0; i < HIDDEN; i++) {
		double inner = slope * model->w[3 * HIDDEN + i] * (1 - hidden[i] * hidden[i]);

		gradient->w[3 * i] += inner * point[0];
		gradient->w[3 * i + 1] += inner * point[1];
		gradient->w[3 * i + 2] += inner;
		gradient->w[3 * HIDDEN + i] += slope * hidden[i];
	}
	gradient->w[4 * HIDDEN] += slope;
	return -log(wanted > 0.5 ? said : 1 - said);
}

static double is_in_ring(const double point[2])
{
	double radius = sqrt(point[0] * point[0] + point[1] * point[1]);

	return radius > 0.4 && radius < 0.8;
}

int main(int argc, char **argv)
{
	int rank, size;
	struct model model = {{0}}, mean = {{0}}, speed = {{0}};
	static double points[POINTS][2];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	uint64_t state = 1000 + (uint64_t)rank;
	for (int i = 0; i < POINTS; i++) {
		points[i][0] = 2 * random_unit(&state) - 1;
		points[i][1] = 2 * random_unit(&state) - 1;
	}
	for (int i = 0; rank == 0 && i < WEIGHTS; i++)
		model.w[i] = 4 * random_unit(&state) - 2;
	MPI_Bcast(model.w, WEIGHTS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks, %d points each, %d weights\n", size, POINTS, WEIGHTS);
	for (int step = 1; step <= STEPS; step++) {
		struct model gradient = {{0}};
		double loss = 0, all = 0;

		for (int i = 0; i < POINTS; i++)
			loss += backward(&model, points[i], is_in_ring(points[i]), &gradient);
		MPI_Allreduce(gradient.w, mean.w, WEIGHTS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < WEIGHTS; i++) {
			speed.w[i] = 0.9 * speed.w[i] - 0.2 * mean.w[i] / (size * POINTS);
			model.w[i] += speed.w[i];
		}
		MPI_Reduce(&loss, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
		if (rank == 0 && step % 100 == 0)
			printf("step %d  loss %.3f\n", step, all / (size * POINTS));
	}
	int right = 0, all_right;
	for (int i = 0; i < POINTS; i++) {
		double hidden[HIDDEN];

		right += (forward(&model, points[i], hidden) > 0.5) == (is_in_ring(points[i]) > 0.5);
	}
	MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	/* The same bits everywhere? Then the least and the greatest of each weight are one. */
	struct model least = {{0}}, most = {{0}};
	MPI_Allreduce(model.w, least.w, WEIGHTS, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
	MPI_Allreduce(model.w, most.w, WEIGHTS, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	int differ = 0;
	for (int i = 0; i < WEIGHTS; i++)
		differ += least.w[i] != most.w[i];
	if (rank == 0)
		printf("%.0f %% right, %s\n", 100.0 * all_right / (size * POINTS), differ ? "but ranks have different weights" : "the same weights on all ranks");
	MPI_Finalize();
	return differ != 0;
}
