#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim.h"

static int keyval = MPI_KEYVAL_INVALID;
/* Of what follows: threads may make, free and use communicators at once. Nothing waits while it is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Those that are jobs of their own: programs need not free them, but jobs are left in good order. */
static struct comm *alone;
/* What MPI_Error_string() says of the last failure. One code for all, as MPI never forgets one. */
static int failure_code;

static void leave_alone(struct comm *comm)
{
	struct comm **at = &alone;

	pthread_mutex_lock(&lock);
	while (*at && *at != comm)
		at = &(*at)->next_alone;
	if (*at)
		*at = comm->next_alone;
	pthread_mutex_unlock(&lock);
	esp_fini(comm->context);
	comm->context = NULL;
	comm->group = NULL;
}

/* MPI frees a communicator: all its ranks do. After MPI_Finalize() has begun, the groups are gone already. */
static int forget(MPI_Comm handle, int key, void *value, void *extra)
{
	struct comm *comm = value;

	(void)key, (void)extra;
	if (shim_is_on()) {
		requests_end(comm);
		if (comm->context) {
			/* Leaving waits for the others, outside of MPI: they come from within it. */
			PMPI_Barrier(handle);
			leave_alone(comm);
		}
		else {
			(void)esp_group_free(comm->group); /* the world's stays: it is refused */
		}
	}
	free(comm);
	return MPI_SUCCESS;
}

struct comm *comm_find(MPI_Comm handle)
{
	void *value;
	int found = 0;

	if (!shim_is_on() || handle == MPI_COMM_NULL)
		return NULL;
	return PMPI_Comm_get_attr(handle, keyval, &value, &found) == MPI_SUCCESS && found ? value : NULL;
}

static void keep(MPI_Comm handle, struct esp_group *group, struct esp_context *context, bool is_worlds)
{
	struct comm *comm = calloc(1, sizeof(*comm));

	/* A rank that cannot remember would leave the others waiting for it. */
	if (!comm || PMPI_Comm_set_attr(handle, keyval, comm) != MPI_SUCCESS) {
		fprintf(stderr, "espalier: no memory for a communicator\n");
		PMPI_Abort(MPI_COMM_WORLD, 1);
		abort();
	}
	*comm = (struct comm){
		.group = group, .context = context, .is_worlds = is_worlds, .rank = esp_rank(group), .size = esp_size(group)};
	if (context) {
		pthread_mutex_lock(&lock);
		comm->next_alone = alone;
		alone = comm;
		pthread_mutex_unlock(&lock);
	}
}

void comms_open(struct esp_context *world)
{
	PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL);
	keep(MPI_COMM_WORLD, esp_world(world), NULL, true);
}

void comms_close(void)
{
	while (alone)
		leave_alone(alone);
	PMPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
}

/* An error code of MPI's whose text is this sentence. */
static int code_of(const char *function, const struct esp_error *error)
{
	char text[sizeof(error->text) + 64];
	int class, code;

	(void)snprintf(text, sizeof(text), "espalier: %s: %s", function, error->text);
	text[MPI_MAX_ERROR_STRING < sizeof(text) ? MPI_MAX_ERROR_STRING - 1 : sizeof(text) - 1] = '\0';
	pthread_mutex_lock(&lock);
	if (failure_code == 0 && PMPI_Add_error_class(&class) == MPI_SUCCESS && PMPI_Add_error_code(class, &code) == MPI_SUCCESS)
		failure_code = code;
	if (failure_code == 0 || PMPI_Add_error_string(failure_code, text) != MPI_SUCCESS)
		code = MPI_ERR_OTHER;
	else
		code = failure_code;
	pthread_mutex_unlock(&lock);
	return code;
}

int comm_fail_as(MPI_Comm comm, const char *function, const struct esp_error *error)
{
	int code = code_of(function, error);

	fprintf(stderr, "espalier: %s: %s\n", function, error->text);
	PMPI_Comm_call_errhandler(comm, code);
	return code;
}

int comm_fail(MPI_Comm comm, const char *function)
{
	struct esp_error error = ESP_ERROR_INIT;

	esp_last_error(&error);
	return comm_fail_as(comm, function, &error);
}

/* ---- new communicators ---- */

/*
 * All ranks of the parent have made a communicator, or none: those who share one split off together. Whom it has is known
 * by its first rank; their order is its own.
 */
static void split_off(MPI_Comm parent_handle, MPI_Comm made)
{
	struct comm *parent = comm_find(parent_handle);
	struct esp_group *group;
	MPI_Group whole, part;
	int rank = 0, size = 0, first = 0, place = -1;

	if (!parent)
		return;
	if (made != MPI_COMM_NULL) {
		PMPI_Comm_rank(made, &rank);
		PMPI_Comm_size(made, &size);
		PMPI_Comm_group(parent_handle, &whole);
		PMPI_Comm_group(made, &part);
		PMPI_Group_translate_ranks(part, 1, &first, whole, &place);
		PMPI_Group_free(&whole);
		PMPI_Group_free(&part);
	}
	/* Too many groups, or no memory for one: all ranks of the parent hear that alike, and MPI carries its calls. */
	if (esp_group_split(parent->group, place, rank, &group) != ESP_OK || !group)
		return;
	if (size > 1)
		keep(made, group, NULL, parent->is_worlds);
	else
		(void)esp_group_free(group);
}

/* Do all its ranks belong to our world, so that all of them have the shim? */
static bool is_of_our_world(MPI_Comm made)
{
	MPI_Group world, part;
	int size, place;
	bool is_ours = true;

	PMPI_Comm_size(made, &size);
	PMPI_Comm_group(MPI_COMM_WORLD, &world);
	PMPI_Comm_group(made, &part);
	for (int i = 0; i < size && is_ours; i++) {
		PMPI_Group_translate_ranks(part, 1, &i, world, &place);
		is_ours = place != MPI_UNDEFINED;
	}
	PMPI_Group_free(&world);
	PMPI_Group_free(&part);
	return is_ours && size > 1;
}

/* Only its own ranks know of it: it becomes a job of its own. */
static void stand_alone(MPI_Comm made)
{
	if (!shim_is_on() || made == MPI_COMM_NULL || !is_of_our_world(made))
		return;
	struct esp_context *context = shim_join(made);
	if (context)
		keep(made, esp_world(context), context, false);
}

#define AFTER(parent, made, call)            \
	do {                                     \
		int code = (call);                   \
		if (code == MPI_SUCCESS)             \
			split_off((parent), *(made));    \
		return code;                         \
	} while (0)

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
	AFTER(comm, newcomm, NEXT(MPI_Comm_dup)(comm, newcomm));
}

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
	AFTER(comm, newcomm, NEXT(MPI_Comm_dup_with_info)(comm, info, newcomm));
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
	AFTER(comm, newcomm, NEXT(MPI_Comm_split)(comm, color, key, newcomm));
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *newcomm)
{
	AFTER(comm, newcomm, NEXT(MPI_Comm_split_type)(comm, type, key, info, newcomm));
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
	AFTER(comm, newcomm, NEXT(MPI_Comm_create)(comm, group, newcomm));
}

int MPI_Cart_create(MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm *newcomm)
{
	AFTER(comm, newcomm, NEXT(MPI_Cart_create)(comm, ndims, dims, periods, reorder, newcomm));
}

int MPI_Cart_sub(MPI_Comm comm, const int remain[], MPI_Comm *newcomm)
{
	AFTER(comm, newcomm, NEXT(MPI_Cart_sub)(comm, remain, newcomm));
}

int MPI_Graph_create(MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm *newcomm)
{
	AFTER(comm, newcomm, NEXT(MPI_Graph_create)(comm, nodes, index, edges, reorder, newcomm));
}

int MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[], const int destinations[],
                          const int weights[], MPI_Info info, int reorder, MPI_Comm *newcomm)
{
	AFTER(comm, newcomm, NEXT(MPI_Dist_graph_create)(comm, n, sources, degrees, destinations, weights, info, reorder, newcomm));
}

int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int sources[], const int source_weights[], int outdegree,
                                   const int destinations[], const int destination_weights[], MPI_Info info, int reorder,
                                   MPI_Comm *newcomm)
{
	AFTER(comm, newcomm, NEXT(MPI_Dist_graph_create_adjacent)(comm, indegree, sources, source_weights, outdegree, destinations,
	                                                          destination_weights, info, reorder, newcomm));
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm)
{
	int code = NEXT(MPI_Comm_create_group)(comm, group, tag, newcomm);

	if (code == MPI_SUCCESS)
		stand_alone(*newcomm);
	return code;
}

int MPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newcomm)
{
	int code = NEXT(MPI_Intercomm_merge)(intercomm, high, newcomm);

	if (code == MPI_SUCCESS)
		stand_alone(*newcomm);
	return code;
}
