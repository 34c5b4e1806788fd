/*
 * launch_leader.c - where rank 0 is, from the variables of mpirun, srun and Kubernetes.
 *
 * If they provide a number of the job but no port, the port is a hash of that number, the same on all ranks,
 * from LAUNCH_PORT_FIRST up and below the kernel's ephemeral ports. Two jobs on one host may get the same port,
 * once in thousands; then the second one reports it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "network/topo/nodelist.h"
#include "rank/join/launch_parts.h"

static uint16_t port_of(const char *job)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
	for (; *job; job++)
		hash = (hash ^ (uint8_t)*job) * UINT64_C(1099511628211);
	return (uint16_t)(LAUNCH_PORT_FIRST + hash % LAUNCH_PORT_COUNT);
}

static void set_leader(struct launch *launch, const char *host, uint16_t port, const char *source)
{
	snprintf(launch->leader.host, sizeof(launch->leader.host), "%s", host);
	launch->leader.port = port;
	launch->leader_source = source;
}

/* True if a variable that counts this host's ranks shows that all ranks are here. */
static bool are_all_here(const struct launch_finder *finder, const char *name, uint32_t size)
{
	uint64_t here;
	const char *text = launch_ask(finder, name);
	return text && number_parse_u64(text, strlen(text), &here) && here == size;
}

/* ---- Open MPI ---- */

static const char *open_mpi_job(const struct launch_finder *finder)
{
	const char *job = launch_ask(finder, "PMIX_NAMESPACE");
	return job ? job : launch_ask(finder, "OMPI_MCA_ess_base_jobid");
}

/* "1874395136.0;tcp://192.0.2.2,10.0.0.2:41115;tcp6://[fd00::2]:57211": the first address. */
static bool uri_host(const char *uri, char host[ADDRESS_HOST])
{
	const char *at = strstr(uri, "tcp://");
	size_t length = at ? strcspn(at + 6, ",:;") : 0;
	if (length == 0 || length >= ADDRESS_HOST)
		return false;
	snprintf(host, ADDRESS_HOST, "%.*s", (int)length, at + 6);
	return true;
}

static enum esp_status open_mpi_leader(const struct launch_finder *finder, struct launch *launch, struct error *err)
{
	char host[ADDRESS_HOST];
	const char *job = open_mpi_job(finder), *uri = launch_ask(finder, "OMPI_MCA_orte_hnp_uri");
	struct error unused;
	if (job && are_all_here(finder, "OMPI_COMM_WORLD_LOCAL_SIZE", launch->size)) {
		set_leader(launch, "127.0.0.1", port_of(job), "Open MPI on one host");
		return ESP_OK;
	}
	if (job && uri && uri_host(uri, host)) {
		char port[8];
		snprintf(port, sizeof(port), "%u", port_of(job));
		launch->leader_source = "the host of mpirun in OMPI_MCA_orte_hnp_uri";
		if (address_from_parts(host, "OMPI_MCA_orte_hnp_uri", port, "the port", &launch->leader, &unused) == ESP_OK)
			return ESP_OK;
	}
	return error_set(err, ESP_PENDING, "Open MPI does not say where rank 0 is: mpirun -x ESP_LEADER=HOST:PORT with the "
	                                   "host of rank 0, or -x ESP_STORE=file:/FOLDER with one that all hosts see");
}

/* ---- MPICH ---- */

/*
 * Nothing is sent on PMI_FD: it belongs to an MPI library in this process, before or after this call, and its
 * barrier would not tell which rank is missing. But the process at its other end has started all ranks of this
 * host.
 */
static enum esp_status mpich_leader(const struct launch_finder *finder, struct launch *launch, struct error *err)
{
	char number[LAUNCH_FACT], job[LAUNCH_FACT + 16];
	const char *fd = launch_ask(finder, "PMI_FD");
	bool here = are_all_here(finder, "MPI_LOCALNRANKS", launch->size);
	if (here && fd && finder->around->fact && finder->around->fact(LAUNCH_FACT_MPIRUN, fd, number)) {
		snprintf(job, sizeof(job), "mpirun-%s", number);
		if (!launch->job[0])
			snprintf(launch->job, sizeof(launch->job), "%.*s", (int)sizeof(launch->job) - 1, job);
		set_leader(launch, "127.0.0.1", port_of(job), "MPICH on one host");
		return ESP_OK;
	}
	return error_set(err, ESP_PENDING, "%s: mpiexec -genv ESP_LEADER HOST:PORT with the host of rank 0, or -genv "
	                                   "ESP_STORE file:/FOLDER with one that all hosts see",
	                 here ? "PMI_FD is not open here, so that nothing tells this job from others"
	                 : "MPICH does not say where rank 0 is");
}

/* ---- Slurm ---- */

static bool slurm_job(const struct launch_finder *finder, char job[LAUNCH_JOB])
{
	const char *id = launch_ask(finder, "SLURM_JOB_ID"), *step = launch_ask(finder, "SLURM_STEP_ID");
	if (!id || !step || strlen(id) + strlen(step) + 10 > LAUNCH_JOB)
		return false;
	snprintf(job, LAUNCH_JOB, "slurm-%s.%s", id, step);
	return true;
}

static enum esp_status slurm_leader(const struct launch_finder *finder, struct launch *launch, struct error *err)
{
	char host[ADDRESS_HOST], job[LAUNCH_JOB], port[8], shown[QUOTE_TEXT];
	const char *name = "SLURM_STEP_NODELIST", *list = launch_ask(finder, name),
	    *nodes = launch_ask(finder, "SLURM_STEP_NUM_NODES");
	struct error reason;
	if (!list)
		list = launch_ask(finder, name = "SLURM_JOB_NODELIST");
	if (!slurm_job(finder, job) || !list)
		return error_set(err, ESP_PENDING, "SLURM_JOB_ID, SLURM_STEP_ID or SLURM_STEP_NODELIST is not set, so that "
		                                   "nothing says where rank 0 is: set ESP_LEADER to host:port");
	if (nodes && strcmp(nodes, "1") == 0) {
		set_leader(launch, "127.0.0.1", port_of(job), "srun on one host, port from SLURM_JOB_ID and SLURM_STEP_ID");
		return ESP_OK;
	}
	snprintf(port, sizeof(port), "%u", port_of(job));
	enum esp_status status = nodelist_name(list, name, 0, host, sizeof(host), &reason);
	if (status == ESP_OK)
		status = address_from_parts(host, name, port, "the port", &launch->leader, &reason);
	if (status != ESP_OK)
		return error_set(err, ESP_PENDING, "%.160s; set ESP_LEADER to host:port, where rank 0 can be reached",
		                 reason.text);
	const char *node = launch_ask(finder, "SLURMD_NODENAME");
	if (launch->rank == 0 && node && strcmp(node, host) != 0) /* --distribution=arbitrary */
		return error_set(err, ESP_PENDING, "rank 0 is on %s, and not on %.80s, the first host of %s: set ESP_LEADER to "
		                                   "host:port, where rank 0 can be reached, or ESP_STORE to file:/FOLDER",
		                 quote(node, strlen(node), shown), host, name);
	launch->leader_source = "the first host of SLURM_STEP_NODELIST, port from SLURM_JOB_ID and SLURM_STEP_ID";
	return ESP_OK;
}

/* ---- Kubernetes ---- */

/* The pod with index 3 of an indexed job is train-3.SERVICE...: then rank 0 is train-0.SERVICE... */
static bool pod_zero(const char *own, const char *index, char host[ADDRESS_HOST])
{
	const char *dot = strchr(own, '.');
	size_t label = dot ? (size_t)(dot - own) : 0, digits = strlen(index);
	if (label < digits + 2 || memcmp(own + label - digits, index, digits) != 0 || own[label - digits - 1] != '-')
		return false;
	int length = snprintf(host, ADDRESS_HOST, "%.*s0%s", (int)(label - digits), own, dot);
	return length > 0 && (size_t)length < ADDRESS_HOST;
}

static enum esp_status pod_leader(const struct launch_finder *finder, struct launch *launch, struct error *err)
{
	char own[LAUNCH_FACT], host[ADDRESS_HOST];
	const char *index = launch_ask(finder, "JOB_COMPLETION_INDEX"), *port = launch_ask(finder, "MASTER_PORT");
	struct error reason;
	if (!index || !finder->around->fact || !finder->around->fact(LAUNCH_FACT_FULL_NAME, NULL, own) ||
	    !pod_zero(own, index, host))
		return error_set(err, ESP_PENDING, "this pod's name does not tell where the pod with index 0 is: give the job "
		                                   "a headless service (spec.template.spec.subdomain), or set ESP_LEADER to "
		                                   "JOB-0.SERVICE:%u", LAUNCH_PORT_POD);
	enum esp_status status =
		address_from_parts(host, "the pod with index 0", port ? port : "29500", "MASTER_PORT", &launch->leader,
		                   &reason);
	if (status == ESP_OK && launch->leader.port == UINT16_MAX)
		status = error_set(&reason, ESP_EINVAL, "MASTER_PORT is 65535, and there is no port above it for the leader");
	if (status != ESP_OK)
		return error_set(err, ESP_PENDING, "%.150s; set ESP_LEADER to JOB-0.SERVICE:%u", reason.text, LAUNCH_PORT_POD);
	launch->leader.port++;
	launch->leader_source = "the pod with index 0";
	return ESP_OK;
}

enum esp_status launch_leader_of(enum launch_starter starter, const struct launch_finder *finder, struct launch *launch,
                                 struct error *err)
{
	switch (starter) {
	case STARTER_OPEN_MPI:
		return open_mpi_leader(finder, launch, err);
	case STARTER_MPICH:
		return mpich_leader(finder, launch, err);
	case STARTER_SLURM:
		return slurm_leader(finder, launch, err);
	case STARTER_KUBERNETES:
		return pod_leader(finder, launch, err);
	case STARTER_ESPALIER:
	case STARTER_TORCHRUN:
	case STARTERS:
		break;
	}
	return ESP_PENDING; /* these have a variable for the leader */
}

void launch_job_of(enum launch_starter starter, const struct launch_finder *finder, char job[LAUNCH_JOB])
{
	const char *name = starter == STARTER_OPEN_MPI ? open_mpi_job(finder) : NULL;
	if (starter == STARTER_SLURM)
		(void)slurm_job(finder, job);
	if (name && strlen(name) + 8 <= LAUNCH_JOB)
		snprintf(job, LAUNCH_JOB, "mpirun-%s", name);
}
