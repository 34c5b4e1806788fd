#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"

static struct {
	MPI_Comm inner; /* a copy of the world's: nobody else's messages are in it */
	struct esp_context *world;
} shim = {MPI_COMM_NULL, NULL};

bool shim_is_on(void)
{
	return shim.world != NULL;
}

struct esp_context *shim_world(void)
{
	return shim.world;
}

static _Thread_local bool is_idle;

bool shim_is_idle(void)
{
	return is_idle;
}

/* Messages of MPI move only while somebody is in it; a rank that waits in Espalier stays in. */
static void go_on(void *context)
{
	int found;

	(void)context;
	is_idle = true;
	PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, shim.inner, &found, MPI_STATUS_IGNORE);
	is_idle = false;
}

/*
 * Joining is all or none. A rank that fails in the middle would leave the others in an all-gather, so before each of them, and at
 * the end, all vote: what the least of them says holds.
 */
enum vote { VOTE_FAILED, VOTE_GATHER, VOTE_JOINED };

struct ballot {
	MPI_Comm comm;
	enum vote result; /* of the last vote */
};

static enum vote vote(struct ballot *ballot, enum vote mine)
{
	int own = (int)mine, least = VOTE_FAILED;

	/* Once anybody has failed, everybody knows and nobody votes any more. */
	if (ballot->result != VOTE_FAILED && PMPI_Allreduce(&own, &least, 1, MPI_INT, MPI_MIN, ballot->comm) != MPI_SUCCESS)
		least = VOTE_FAILED;
	ballot->result = (enum vote)least;
	return ballot->result;
}

static enum esp_status gather(void *context, const void *mine, void *all, size_t bytes)
{
	struct ballot *ballot = context;

	if (vote(ballot, VOTE_GATHER) != VOTE_GATHER)
		return ESP_EJOB;
	return PMPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, ballot->comm) == MPI_SUCCESS ? ESP_OK : ESP_EIO;
}

static bool is_wanted(void)
{
	const char *wish = getenv("ESP_MPI");

	return !wish || (strcmp(wish, "off") != 0 && strcmp(wish, "0") != 0);
}

struct esp_context *shim_join(MPI_Comm comm)
{
	static const char *const patient[] = {"deadline_seconds=31536000" /* the most there is: a year */, NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_context *context = NULL;
	struct ballot ballot = {comm, VOTE_GATHER};
	int rank, size;

	PMPI_Comm_rank(comm, &rank);
	PMPI_Comm_size(comm, &size);
	/* Whether anybody does not want it is settled before joining, which would wait for them. */
	if (vote(&ballot, is_wanted() ? VOTE_JOINED : VOTE_FAILED) == VOTE_FAILED)
		return NULL;
	options.rank = (uint32_t)rank;
	options.size = (uint32_t)size;
	options.allgather = gather;
	options.allgather_context = &ballot;
	options.idle = go_on;
	/* MPI knows no deadlines: a rank may be late by hours. Those that die are noticed all the same. */
	options.settings = getenv("ESP_DEADLINE_SECONDS") ? NULL : patient;
	bool is_in = esp_init(&options, &context) == ESP_OK;
	bool others_failed = ballot.result == VOTE_FAILED;
	if (!is_in)
		esp_last_error(&error);
	if (vote(&ballot, is_in ? VOTE_JOINED : VOTE_FAILED) == VOTE_JOINED)
		return context;
	if (!is_in && !others_failed)
		fprintf(stderr, "espalier: rank %d cannot join, so MPI carries all calls itself: %s\n", rank, error.text);
	esp_fini(context);
	return NULL;
}

static void open_shim(void)
{
	int size;

	PMPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size < 2 || PMPI_Comm_dup(MPI_COMM_WORLD, &shim.inner) != MPI_SUCCESS)
		return;
	PMPI_Comm_set_errhandler(shim.inner, MPI_ERRORS_RETURN);
	shim.world = shim_join(shim.inner);
	if (shim.world) {
		requests_open();
		comms_open(shim.world);
		share_open(shim.world);
	}
}

#ifdef OPEN_MPI
#define OWN_MPI "Open MPI"
#define OTHER_MPI "MPICH"
#define OTHER_MPIS_SYMBOL "MPIR_Dup_fn" /* its mpi.h refers to it */
#else
#define OWN_MPI "MPICH"
#define OTHER_MPI "Open MPI"
#define OTHER_MPIS_SYMBOL "ompi_mpi_comm_world"
#endif

/* Before any handle of the program's is looked at: they are not what they seem. */
static void check_library(void)
{
	if (!dlsym(RTLD_DEFAULT, OTHER_MPIS_SYMBOL))
		return;
	fprintf(stderr, "espalier: this libespalier-mpi.so is for " OWN_MPI ", and the program uses " OTHER_MPI ": preload, or link, the one for " OTHER_MPI "\n");
	_exit(1);
}

int MPI_Init(int *argc, char ***argv)
{
	check_library();
	int code = NEXT(MPI_Init)(argc, argv);

	if (code == MPI_SUCCESS)
		open_shim();
	return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	check_library();
	int code = NEXT(MPI_Init_thread)(argc, argv, required, provided);

	if (code == MPI_SUCCESS)
		open_shim();
	return code;
}

int MPI_Finalize(void)
{
	if (shim.inner != MPI_COMM_NULL) {
		summary_print(shim.inner);
		if (shim.world) {
			requests_drain();
			/* Leaving waits for the others, outside of MPI, where their messages would not move on. */
			PMPI_Barrier(shim.inner);
			comms_close();
			share_close();
			esp_fini(shim.world);
			shim.world = NULL;
			share_closed();
		}
		PMPI_Comm_free(&shim.inner);
	}
	return NEXT(MPI_Finalize)();
}
