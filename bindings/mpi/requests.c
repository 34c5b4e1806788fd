/*
 * requests.c - non-blocking calls: an MPI request that stands for work of Espalier.
 *
 * It is one of MPI's generalized requests, so it may be mixed with any others. They are completed from within MPI: by the
 * functions here that wait or test, which look after Espalier's work first. Nothing depends on how soon that is, as the work
 * itself goes on in Espalier's threads. Somebody may wait past these functions (PMPI_Wait() of another tool, Fortran's in Open MPI):
 * there MPI's own progress looks after it. MPICH polls such requests itself; Open MPI calls whoever has registered with it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trip.h"

struct flight {
	struct flight *next;
	MPI_Request request;
	struct trip trip;
	const char *function;
	struct esp_work *counting; /* alltoallv: the table of counts is gathered first; else NULL */
	uint64_t *row, *table;
	_Atomic(struct esp_work *) work; /* NULL: not started yet */
	atomic_bool failed;        /* it could not be */
	bool claimed;              /* somebody waits for it */
	int code;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct flight *flights;
static atomic_uint flying;

bool requests_are_under_way(void)
{
	return atomic_load(&flying) > 0;
}

/* ---- what MPI asks of a generalized request ---- */

static int query(void *extra, MPI_Status *status)
{
	(void)extra;
	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = MPI_UNDEFINED;
	status->MPI_TAG = MPI_UNDEFINED;
	/* The shim's functions return the error themselves: from here it would go to the handler of MPI_COMM_WORLD. */
	return MPI_SUCCESS;
}

static int release(void *extra)
{
	free(extra);
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS; /* a collective cannot be taken back; the status says that it was not */
}

/* ---- the end of a flight ---- */

static enum esp_status look(struct flight *flight)
{
	struct esp_work *work = atomic_load(&flight->work);

	if (work)
		return esp_test(work);
	return atomic_load(&flight->failed) ? ESP_EJOB : ESP_PENDING;
}

static void unlist(struct flight *flight)
{
	for (struct flight **at = &flights; *at; at = &(*at)->next) {
		if (*at == flight) {
			*at = flight->next;
			atomic_fetch_sub(&flying, 1);
			return;
		}
	}
}

/* It has ended and is in no list: the request completes, and MPI frees the rest when it is waited for, or now. Returns its error. */
static int land(struct flight *flight)
{
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_work *work = atomic_load(&flight->work);

	if (look(flight) == ESP_OK) {
		flight->code = trip_arrive(&flight->trip) ? MPI_SUCCESS : MPI_ERR_TYPE;
	} else {
		esp_work_error(work ? work : flight->counting, &error);
		if (error.status == ESP_OK)
			esp_group_error(flight->trip.known->group, &error);
		flight->code = comm_fail_as(flight->trip.comm, flight->function, &error);
	}
	esp_work_free(flight->counting);
	esp_work_free(work);
	free(flight->row);
	free(flight->table);
	trip_end(&flight->trip);
	int code = flight->code;
	PMPI_Grequest_complete(flight->request);
	return code;
}

/* Lands all that have ended and that nobody waits for. */
static void settle(void)
{
	struct flight *ended = NULL, **at = &flights;

	if (atomic_load_explicit(&flying, memory_order_relaxed) == 0)
		return;
	pthread_mutex_lock(&lock);
	while (*at) {
		struct flight *flight = *at;

		if (flight->claimed || look(flight) == ESP_PENDING) {
			at = &flight->next;
			continue;
		}
		*at = flight->next;
		atomic_fetch_sub(&flying, 1);
		flight->next = ended;
		ended = flight;
	}
	pthread_mutex_unlock(&lock);
	while (ended) {
		struct flight *flight = ended;

		ended = flight->next;
		(void)land(flight);
	}
}

/* ---- starting ---- */

#ifdef MPICH_NUMVERSION
static struct flight *claim(MPI_Request request);
static int wait_for_claimed(struct flight *flight);

static int poll_one(void *extra, MPI_Status *status)
{
	(void)extra, (void)status;
	settle();
	return MPI_SUCCESS;
}

/* Ends when all of them have. */
static int wait_for_all(int count, void **flights_of_all, double timeout, MPI_Status *status)
{
	(void)timeout, (void)status;
	for (int i = 0; i < count; i++) {
		MPI_Request request = ((struct flight *)flights_of_all[i])->request;
		struct flight *flight = claim(request);
		int is_over = 0;

		if (flight)
			(void)wait_for_claimed(flight);
		else /* another thread lands it */
			while (!is_over && PMPI_Request_get_status(request, &is_over, MPI_STATUS_IGNORE) == MPI_SUCCESS)
				sched_yield();
	}
	return MPI_SUCCESS;
}

static int start_request(struct flight *flight)
{
	return PMPIX_Grequest_start(query, release, cancel, poll_one, wait_for_all, flight, &flight->request);
}

void requests_open(void) {}
#else
static int start_request(struct flight *flight)
{
	return PMPI_Grequest_start(query, release, cancel, flight, &flight->request);
}

/* Called by Open MPI while it waits for anything. Not while we wait in Espalier, which calls MPI then and is not to be called back. */
static int progress(void)
{
	if (!shim_is_idle())
		settle();
	return 0;
}

void requests_open(void)
{
	/* Of its library opal; one that does not have it waits through our functions only. */
	int (*enlist)(int (*)(void)) = (int (*)(int (*)(void)))dlsym(RTLD_DEFAULT, "opal_progress_register");

	if (enlist)
		(void)enlist(progress);
}
#endif

/* NULL: the call cannot be made; *out_code says how the caller hears of it. */
static struct flight *take_off(struct trip *trip, const char *function, MPI_Request *request, int *out_code)
{
	struct flight *flight = calloc(1, sizeof(*flight));

	if (!flight)
		trip_trouble(trip, "no memory for a non-blocking call");
	if (flight && !trip->trouble[0]) {
		flight->trip = *trip;
		flight->function = function;
		if (start_request(flight) == MPI_SUCCESS) {
			*request = flight->request;
			return flight;
		}
		trip_trouble(trip, "MPI gives no request");
	}
	free(flight);
	*out_code = trip_refuse(trip, function);
	trip_end(trip);
	*request = MPI_REQUEST_NULL;
	return NULL;
}

static void list(struct flight *flight)
{
	pthread_mutex_lock(&lock);
	flight->next = flights;
	flights = flight;
	atomic_fetch_add(&flying, 1);
	pthread_mutex_unlock(&lock);
}

/* The library refused it: nothing was started. */
static int give_up(struct flight *flight, MPI_Request *request)
{
	int code = comm_fail(flight->trip.comm, flight->function);

	free(flight->row);
	free(flight->table);
	trip_end(&flight->trip);
	flight->code = code;
	PMPI_Grequest_complete(flight->request);
	PMPI_Request_free(request);
	return code;
}

int trip_start(struct trip *trip, const char *function, MPI_Request *request)
{
	int code;
	struct flight *flight = take_off(trip, function, request, &code);
	struct esp_work *work;

	if (!flight)
		return code;
	trip_share(&flight->trip);
	if (esp_start(trip->known->group, &flight->trip.call, &work) != ESP_OK)
		return give_up(flight, request);
	atomic_store(&flight->work, work);
	list(flight);
	return MPI_SUCCESS;
}

/* ---- alltoallv ---- */

static void count_call(struct trip *trip, uint64_t *row, uint64_t *table, struct esp_call *out)
{
	*out = (struct esp_call)ESP_CALL_INIT;
	out->collective = ESP_ALLGATHER;
	out->type = ESP_U64;
	out->count = trip->known->size;
	out->in = row;
	out->out = table;
}

/* Does everybody send what this rank expects? Otherwise their blocks would not fit. */
static bool is_expected(struct trip *trip, const uint64_t *table)
{
	const struct comm *known = trip->known;

	for (uint32_t i = 0; i < known->size; i++) {
		uint64_t sent = table[(size_t)i * known->size + known->rank];

		if (sent != trip->expected[i])
			trip_trouble(trip, "rank %u sends %llu bytes to rank %u, which expects %llu", i, (unsigned long long)sent, known->rank,
			             (unsigned long long)trip->expected[i]);
	}
	return !trip->trouble[0];
}

/* The table is there, told by a thread of Espalier: now the data. Other ranks may make other calls first, so it has a key. */
static void counted(void *context, struct esp_work *work, enum esp_status status)
{
	struct flight *flight = context;
	struct esp_work *second;

	(void)work;
	bool fits = status == ESP_OK && is_expected(&flight->trip, flight->table);
	if (fits && esp_start(flight->trip.known->group, &flight->trip.call, &second) == ESP_OK)
		atomic_store(&flight->work, second);
	else {
		if (status == ESP_OK) /* the others have started it, and wait */
			esp_abort(flight->trip.known->group, fits ? "no memory for an alltoall" : flight->trip.trouble);
		atomic_store(&flight->failed, true);
	}
}

static int run_alltoallv(struct trip *trip, uint64_t *row, uint64_t *table, const char *function)
{
	struct esp_call counting;
	int code;

	count_call(trip, row, table, &counting);
	if (!trip->trouble[0] && esp_run(trip->known->group, &counting) != ESP_OK) {
		code = comm_fail(trip->comm, function);
		trip_end(trip);
	} else {
		if (table && !trip->trouble[0])
			(void)is_expected(trip, table);
		trip->call.counts = table;
		code = trip_run(trip, function);
	}
	free(row);
	free(table);
	return code;
}

int trip_alltoallv(struct trip *trip, uint64_t *row, const char *function, MPI_Request *request)
{
	size_t size = trip->known->size;
	uint64_t *table = malloc(size * size * sizeof(*table));
	struct esp_call counting;
	int code;

	if (!table)
		trip_trouble(trip, "no memory for the counts of an alltoall");
	if (!request)
		return run_alltoallv(trip, row, table, function);
	trip->call.counts = table;
	trip->call.flags = ESP_KEYED;
	trip->call.key = trip->known->keys++;
	struct flight *flight = take_off(trip, function, request, &code);
	if (!flight) {
		free(row);
		free(table);
		return code;
	}
	flight->row = row;
	flight->table = table;
	count_call(trip, row, table, &counting);
	counting.done = counted;
	counting.done_context = flight;
	trip_share(&flight->trip);
	if (esp_start(trip->known->group, &counting, &flight->counting) != ESP_OK)
		return give_up(flight, request);
	list(flight);
	return MPI_SUCCESS;
}

/* ---- waiting ---- */

/* Takes the flight of this request out of the others' hands; NULL: it is not one of ours, or has landed. */
static struct flight *claim(MPI_Request request)
{
	struct flight *found = NULL;

	if (atomic_load_explicit(&flying, memory_order_relaxed) == 0 || request == MPI_REQUEST_NULL)
		return NULL;
	pthread_mutex_lock(&lock);
	for (struct flight *flight = flights; flight && !found; flight = flight->next) {
		if (flight->request == request)
			found = flight;
	}
	if (found)
		found->claimed = true;
	pthread_mutex_unlock(&lock);
	return found;
}

static bool has_ours(int count, const MPI_Request requests[])
{
	bool found = false;

	if (atomic_load_explicit(&flying, memory_order_relaxed) == 0)
		return false;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < count && !found; i++) {
		for (struct flight *flight = flights; flight && !found; flight = flight->next)
			found = flight->request == requests[i];
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* Messages of MPI go on meanwhile: Espalier calls go_on() while it waits (init.c). */
static int wait_for_claimed(struct flight *flight)
{
	if (flight->counting)
		(void)esp_wait(flight->counting, -1);
	/* The word that counting has ended may come a moment after its end. */
	while (!atomic_load(&flight->work) && !atomic_load(&flight->failed))
		sched_yield();
	if (atomic_load(&flight->work))
		(void)esp_wait(atomic_load(&flight->work), -1);
	pthread_mutex_lock(&lock);
	unlist(flight);
	pthread_mutex_unlock(&lock);
	return land(flight);
}

static int wait_for(MPI_Request request)
{
	struct flight *flight = claim(request);

	return flight ? wait_for_claimed(flight) : MPI_SUCCESS;
}

void requests_end(const struct comm *comm)
{
	struct flight *flight, *free_one;

	do {
		pthread_mutex_lock(&lock);
		free_one = NULL;
		for (flight = flights; flight; flight = flight->next) {
			if (flight->trip.known == comm && !flight->claimed)
				free_one = flight;
		}
		if (free_one)
			free_one->claimed = true;
		pthread_mutex_unlock(&lock);
		if (free_one)
			(void)wait_for_claimed(free_one);
	} while (free_one);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	int ours = wait_for(*request), code = NEXT(MPI_Wait)(request, status);

	return ours != MPI_SUCCESS ? ours : code;
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	int ours = MPI_SUCCESS;

	for (int i = 0; i < count; i++) {
		int one = wait_for(requests[i]);

		ours = ours == MPI_SUCCESS ? one : ours;
	}
	int code = NEXT(MPI_Waitall)(count, requests, statuses);
	return ours != MPI_SUCCESS ? ours : code;
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	int code = MPI_SUCCESS, flag = 0;

	if (!has_ours(count, requests))
		return NEXT(MPI_Waitany)(count, requests, index, status);
	while (code == MPI_SUCCESS && !flag) {
		settle();
		code = NEXT(MPI_Testany)(count, requests, index, &flag, status);
		if (!flag)
			sched_yield();
	}
	return code;
}

int MPI_Waitsome(int count, MPI_Request requests[], int *out_count, int indices[], MPI_Status statuses[])
{
	int code = MPI_SUCCESS;

	if (!has_ours(count, requests))
		return NEXT(MPI_Waitsome)(count, requests, out_count, indices, statuses);
	*out_count = 0;
	while (code == MPI_SUCCESS && *out_count == 0) {
		settle();
		code = NEXT(MPI_Testsome)(count, requests, out_count, indices, statuses);
		if (*out_count == 0)
			sched_yield();
	}
	return code;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	settle();
	return NEXT(MPI_Test)(request, flag, status);
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	settle();
	return NEXT(MPI_Testall)(count, requests, flag, statuses);
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	settle();
	return NEXT(MPI_Testany)(count, requests, index, flag, status);
}

int MPI_Testsome(int count, MPI_Request requests[], int *out_count, int indices[], MPI_Status statuses[])
{
	settle();
	return NEXT(MPI_Testsome)(count, requests, out_count, indices, statuses);
}

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	settle();
	return NEXT(MPI_Request_get_status)(request, flag, status);
}

void requests_drain(void)
{
	while (atomic_load(&flying) > 0) {
		settle();
		sched_yield();
	}
}
