#include "rank/join/launch.h"

#include "base/check.h"

/* An environment: name=value pairs, ending with NULL. */
static const char *look_up(void *context, const char *name)
{
	const char *const *pairs = context;
	size_t length = strlen(name);
	for (; *pairs; pairs++)
		if (strncmp(*pairs, name, length) == 0 && (*pairs)[length] == '=')
			return *pairs + length + 1;
	return NULL;
}

static struct launch found;
static struct error err;
static char warnings[512];
static const char *full_name, *mpirun; /* facts of the system; NULL: unknown */

static void note(void *context, const struct error *warning)
{
	size_t used = strlen(warnings);
	CHECK(context == &found);
	snprintf(warnings + used, sizeof(warnings) - used, "%s%s", used ? "\n" : "", warning->text);
}

static bool fact(enum launch_fact which, const char *about, char out[LAUNCH_FACT])
{
	const char *known = which == LAUNCH_FACT_MPIRUN ? mpirun : full_name;
	CHECK(which != LAUNCH_FACT_MPIRUN || strcmp(about, "6") == 0);
	if (known)
		snprintf(out, LAUNCH_FACT, "%s", known);
	return known != NULL;
}

static enum esp_status find(struct launch_arguments arguments, const char *const *pairs)
{
	const struct launch_surroundings around = {look_up, (void *)(uintptr_t)pairs, fact, note, &found};
	error_clear(&err);
	warnings[0] = '\0';
	return launch_find(&arguments, &around, &found, &err);
}

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})
#define TORCH "RANK=1", "WORLD_SIZE=4", "MASTER_ADDR=node0", "MASTER_PORT=29500"
#define OPEN_MPI "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=4", \
	"PMIX_NAMESPACE=1874395137"
#define MPICH "PMI_RANK=0", "PMI_SIZE=2", "PMI_FD=6", "MPI_LOCALNRANKS=2"
#define SLURM_STEP "SLURM_PROCID=2", "SLURM_STEP_NUM_TASKS=3", "SLURM_STEP_ID=0", "SLURM_JOB_ID=71"
#define SLURM SLURM_STEP, "SLURM_STEP_NUM_NODES=2", "SLURM_STEP_NODELIST=n[08-09]"
#define OWN "ESP_RANK=2", "ESP_SIZE=8", "ESP_LEADER=[::1]:700"

static void sources(void)
{
	char text[LAUNCH_TEXT];

	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(TORCH)) == ESP_OK);
	CHECK_STR(launch_describe(&found, text), "rank 1 of 4 (RANK, WORLD_SIZE), leader node0:29501 (MASTER_ADDR, "
	                                         "MASTER_PORT + 1)");
	CHECK(warnings[0] == '\0' && found.epoch == 0);
	CHECK_STR(found.job, "");

	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(OWN)) == ESP_OK);
	CHECK_STR(launch_describe(&found, text), "rank 2 of 8 (ESP_RANK, ESP_SIZE), leader [::1]:700 (ESP_LEADER)");

	CHECK(find((struct launch_arguments){0, 2, "h:1", "mine"}, ENV("X=1")) == ESP_OK);
	CHECK_STR(launch_describe(&found, text), "rank 0 of 2 (the argument rank, the argument size), leader h:1 (the "
	                                         "argument leader)");
	CHECK_STR(found.job, "mine");

	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV("ESP_RANK=0", "ESP_LEADER=a:1", TORCH, "TORCHELASTIC_RUN_ID=run7",
	                                    "TORCHELASTIC_RESTART_COUNT=3")) == ESP_OK);
	CHECK_STR(launch_describe(&found, text), "rank 0 of 4 (ESP_RANK, WORLD_SIZE), leader a:1 (ESP_LEADER)");
	CHECK_STR(found.job, "run7");
	CHECK_U64(found.epoch, 3);
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(OWN, "TORCHELASTIC_RUN_ID=run7", "ESP_JOB=j", "ESP_EPOCH=5",
	                                    "TORCHELASTIC_RESTART_COUNT=3")) == ESP_OK);
	CHECK_STR(found.job, "j");
	CHECK_U64(found.epoch, 5);
}

/* A launcher's variables are about the ranks that it has numbered. */
static void launchers(void)
{
	/* espalier run's own, in torchrun's words: they count together with ESP_RANK, and alone make no rank. */
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(OWN, TORCH, "ESPALIER_RUN=1/4")) == ESP_OK);
	CHECK(found.rank == 2 && found.size == 8);
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(TORCH, "ESPALIER_RUN=2/4")) == ESP_OK); /* torchrun under espalier run */
	CHECK(found.rank == 1 && found.size == 4);
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(OWN, "ESP_LAUNCHER=run-7")) == ESP_OK);
	CHECK_STR(found.launcher, "run-7");
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(OWN)) == ESP_OK);
	CHECK_STR(found.launcher, "");
	CHECK(find((struct launch_arguments){1, 2, "h:1", NULL}, ENV(OWN, "ESP_LAUNCHER=run-7")) == ESP_OK);
	CHECK_STR(found.launcher, "");
	CHECK(find((struct launch_arguments){-1, -1, "h:1", NULL}, ENV(OWN, "ESP_LAUNCHER=run-7")) == ESP_OK);
	CHECK_STR(found.launcher, "");
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(TORCH, "ESP_LAUNCHER=run-7")) == ESP_OK);
	CHECK_STR(found.launcher, "");
}

/* A job of one rank needs no leader, and an empty variable counts as unset. */
static void alone(void)
{
	char text[LAUNCH_TEXT];

	CHECK(find((struct launch_arguments){0, 1, NULL, NULL}, ENV("ESP_LEADER=")) == ESP_OK);
	CHECK_U64(found.leader.port, 0);
	CHECK_STR(launch_describe(&found, text), "rank 0 of 1 (the argument rank, the argument size), leader none (none)");
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV("ESP_RANK=", TORCH)) == ESP_OK);
	CHECK_U64(found.rank, 1);
}

static void contradictions(void)
{
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV("ESP_RANK=3", TORCH)) == ESP_OK);
	CHECK_U64(found.rank, 3);
	CHECK_STR(warnings, "ESP_RANK is '3' but RANK is '1'; using ESP_RANK");
	CHECK(find((struct launch_arguments){1, 3, NULL, NULL}, ENV(TORCH)) == ESP_OK);
	CHECK_STR(warnings, "the argument size is '3' but WORLD_SIZE is '4'; using the argument size");
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV("ESP_RANK=1", TORCH)) == ESP_OK);
	CHECK_STR(warnings, "");
	/* Two launchers at once: each difference is reported, with both values. */
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(TORCH, SLURM)) == ESP_OK);
	CHECK_STR(warnings, "WORLD_SIZE is '4' but SLURM_STEP_NUM_TASKS is '3'; using WORLD_SIZE\n"
	                    "RANK is '1' but SLURM_PROCID is '2'; using RANK");
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(OPEN_MPI, "PMI_RANK=0", "PMI_SIZE=4", "JOB_COMPLETION_INDEX=5")) == ESP_OK);
	CHECK_STR(warnings, "OMPI_COMM_WORLD_RANK is '3' but PMI_RANK is '0'; using OMPI_COMM_WORLD_RANK\n"
	                    "OMPI_COMM_WORLD_RANK is '3' but JOB_COMPLETION_INDEX is '5'; using OMPI_COMM_WORLD_RANK");
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(OWN, SLURM, "ESP_LAUNCHER=")) == ESP_OK); /* espalier run within a step */
	CHECK_STR(warnings, "");
	/* A batch script is no rank, whatever it inherits. */
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(TORCH, "SLURM_PROCID=0", "SLURM_NTASKS=9", "SLURM_JOB_ID=7")) == ESP_OK);
	CHECK_STR(warnings, "");
	const struct launch_surroundings quiet = {look_up, (void *)(uintptr_t)ENV("ESP_RANK=3", TORCH), NULL, NULL, NULL};
	CHECK(launch_find(&LAUNCH_NO_ARGUMENTS, &quiet, &found, NULL) == ESP_OK);
}

static void told(void)
{
	static const char *const nothing[] = {NULL}, *const batch[] = {"SLURM_PROCID=0", "SLURM_NTASKS=4", "RANK=", NULL};
	CHECK(!launch_is_told(look_up, (void *)(uintptr_t)nothing));
	CHECK(!launch_is_told(look_up, (void *)(uintptr_t)batch));
	CHECK(!launch_is_told(look_up, (void *)(uintptr_t)ENV(TORCH, "ESPALIER_RUN=1/4")));
	CHECK(launch_is_told(look_up, (void *)(uintptr_t)ENV("WORLD_SIZE=2")));
	CHECK(launch_is_told(look_up, (void *)(uintptr_t)ENV("OMPI_COMM_WORLD_RANK=0")));
	CHECK(launch_is_told(look_up, (void *)(uintptr_t)ENV(SLURM)));
	CHECK(launch_is_told(look_up, (void *)(uintptr_t)ENV("JOB_COMPLETION_INDEX=0")));
}

/* Checks the leader from a launcher's variables, and the job's name; or the advice. */
static void check_leader(const char *const *pairs, const char *leader, const char *job)
{
	char text[LAUNCH_TEXT];
	CHECK_MSG(find(LAUNCH_NO_ARGUMENTS, pairs) == ESP_OK, "%s", err.text);
	const char *from = strstr(launch_describe(&found, text), "leader");
	CHECK_STR(from, leader);
	CHECK_STR(found.job, job);
}

static void check_advice(const char *const *pairs, const char *advice)
{
	CHECK(find(LAUNCH_NO_ARGUMENTS, pairs) == ESP_EINVAL);
	CHECK_MSG(strstr(err.text, advice), "%s", err.text);
}

static void open_mpi(void)
{
	char text[LAUNCH_TEXT];
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(OPEN_MPI)) == ESP_OK);
	CHECK_STR(launch_describe(&found, text), "rank 3 of 4 (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE), leader "
	                                         "127.0.0.1:21839 (Open MPI on one host)");
	CHECK_STR(found.job, "mpirun-1874395137");
	check_leader(ENV("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
	                 "PMIX_NAMESPACE=1874395137",
	                 "OMPI_MCA_orte_hnp_uri=1874395136.0;tcp://192.0.2.2,10.0.0.2:41115;tcp6://[fd00::2]:57211"),
	             "leader 192.0.2.2:21839 (the host of mpirun in OMPI_MCA_orte_hnp_uri)", "mpirun-1874395137");
	check_leader(ENV(OPEN_MPI, "ESP_LEADER=h:1", "ESP_JOB=mine"), "leader h:1 (ESP_LEADER)", "mine");
	check_advice(ENV("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
	                 "PMIX_NAMESPACE=18"), "mpirun -x ESP_LEADER=HOST:PORT");
	check_advice(ENV("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2"),
	             "-x ESP_STORE=file:/FOLDER");
}

static void mpich(void)
{
	mpirun = "5769";
	check_leader(ENV(MPICH), "leader 127.0.0.1:23726 (MPICH on one host)", "mpirun-5769");
	check_leader(ENV(MPICH, "ESP_JOB=j"), "leader 127.0.0.1:23726 (MPICH on one host)", "j");
	check_advice(ENV("PMI_PORT=h:1", "PMI_ID=0", "MPI_LOCALNRANKS=2"),
	             "mpiexec -pmi-port does not tell how many ranks there are");
	CHECK(launch_is_told(look_up, (void *)(uintptr_t)ENV("PMI_PORT=h:1", "PMI_ID=0")));
	check_advice(ENV("PMI_RANK=0", "PMI_SIZE=4", "PMI_FD=6", "MPI_LOCALNRANKS=2"),
	             "MPICH does not say where rank 0 is: mpiexec -genv ESP_LEADER");
	mpirun = NULL;
	check_advice(ENV(MPICH), "PMI_FD is not open here");
	/* srun with its own PMI: the first launcher that knows the leader */
	check_leader(ENV("PMI_RANK=2", "PMI_SIZE=3", "PMI_FD=6", SLURM),
	             "leader n08:20357 (the first host of SLURM_STEP_NODELIST, port from SLURM_JOB_ID and SLURM_STEP_ID)",
	             "slurm-71.0");
}

static void slurm(void)
{
	check_leader(ENV(SLURM),
	             "leader n08:20357 (the first host of SLURM_STEP_NODELIST, port from SLURM_JOB_ID and SLURM_STEP_ID)",
	             "slurm-71.0");
	check_leader(ENV(SLURM_STEP, "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NODELIST=vm"),
	             "leader 127.0.0.1:20357 (srun on one host, port from SLURM_JOB_ID and SLURM_STEP_ID)", "slurm-71.0");
	check_leader(ENV(SLURM, "ESP_STORE=file:/shared", "SLURM_RESTART_COUNT=2"),
	             "leader's address in file:/shared (ESP_STORE)", "slurm-71.0");
	CHECK_U64(found.epoch, 2);
	check_advice(ENV(SLURM_STEP, "SLURM_STEP_NODELIST=n["),
	             "SLURM_STEP_NODELIST is a list of host names such as n[1-3,7],m2, not 'n['; set ESP_LEADER to "
	             "host:port");
	check_advice(ENV(SLURM_STEP), "SLURM_STEP_NODELIST is not set");
	check_advice(ENV("SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=3", "SLURM_STEP_ID=0", "SLURM_JOB_ID=71",
	                 "SLURM_STEP_NODELIST=n[08-09]", "SLURMD_NODENAME=n09"),
	             "rank 0 is on 'n09', and not on n08, the first host of SLURM_STEP_NODELIST: set ESP_LEADER");
}

static void kubernetes(void)
{
	full_name = "train-3.workers.lab.svc.cluster.local";
	check_leader(ENV("JOB_COMPLETION_INDEX=3", "ESP_SIZE=8"),
	             "leader train-0.workers.lab.svc.cluster.local:29501 (the pod with index 0)", "");
	check_leader(ENV("JOB_COMPLETION_INDEX=3", "WORLD_SIZE=8", "MASTER_PORT=4000"),
	             "leader train-0.workers.lab.svc.cluster.local:4001 (the pod with index 0)", "");
	check_advice(ENV("JOB_COMPLETION_INDEX=3"), "set ESP_SIZE to the job's completions");
	check_advice(ENV("JOB_COMPLETION_INDEX=3", "ESP_SIZE=8", "MASTER_PORT=65535"),
	             "set ESP_LEADER to JOB-0.SERVICE:29501");
	full_name = "train-3.a\001b";
	check_advice(ENV("JOB_COMPLETION_INDEX=3", "ESP_SIZE=8"), "not 'train-0.a?b'; set ESP_LEADER");
	full_name = "train-3";
	check_advice(ENV("JOB_COMPLETION_INDEX=3", "ESP_SIZE=8"), "set ESP_LEADER to JOB-0.SERVICE:29501");
	full_name = "train-13.workers";
	check_advice(ENV("JOB_COMPLETION_INDEX=3", "ESP_SIZE=8"), "give the job a headless service");
	full_name = NULL;
	check_advice(ENV("JOB_COMPLETION_INDEX=3", "ESP_SIZE=8"), "give the job a headless service");
}

static const struct {
	const char *const *pairs;
	const char *text;
} bad[] = {
	{(const char *const[]){NULL},
	 "neither ESP_SIZE nor WORLD_SIZE is set: start with espalier run, torchrun, mpirun or srun, or set ESP_SIZE to "
	 "the number of ranks"},
	{(const char *const[]){"ESP_SIZE=2", NULL},
	 "neither ESP_RANK nor RANK is set: start with espalier run, torchrun, mpirun or srun, or set ESP_RANK to the "
	 "number of this rank"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=2", NULL},
	 "ESP_RANK is the number of this rank, from 0 to 1, not '2'"},
	{(const char *const[]){"ESP_SIZE=2", "RANK=-1", NULL}, "RANK is the number of this rank, from 0 to 1, not '-1'"},
	{(const char *const[]){"WORLD_SIZE=0", NULL}, "WORLD_SIZE is the number of ranks, from 1 to 65536, not '0'"},
	{(const char *const[]){"ESP_SIZE=99999999999", NULL},
	 "ESP_SIZE is the number of ranks, from 1 to 65536, not '99999999999'"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=0", NULL},
	 "neither ESP_LEADER nor MASTER_ADDR is set: set ESP_LEADER to host:port, where rank 0 can be reached, or "
	 "ESP_STORE to "
	 "file:/FOLDER that all ranks see"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=0", "MASTER_ADDR=a", NULL},
	 "MASTER_ADDR is set but MASTER_PORT is not"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=0", "MASTER_PORT=1", NULL},
	 "MASTER_PORT is set but MASTER_ADDR is not"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=0", "MASTER_ADDR=a", "MASTER_PORT=65535", NULL},
	 "MASTER_PORT is 65535, and there is no port above it for the leader"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=0", "MASTER_ADDR=a b", "MASTER_PORT=5", NULL},
	 "MASTER_ADDR is the name or address of a host, not 'a b'"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=0", "ESP_LEADER=node0", NULL},
	 "ESP_LEADER is host:port or [IPv6]:port with a port from 1 to 65535, not 'node0'"},
	{(const char *const[]){OWN, "ESP_EPOCH=x", NULL}, "ESP_EPOCH says how often the job was started anew, not 'x'"},
};

static void complaints(void)
{
	char name[200];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		found.size = 77;
		CHECK_MSG(find(LAUNCH_NO_ARGUMENTS, bad[i].pairs) == ESP_EINVAL, "%s", bad[i].text);
		CHECK_STR(err.text, bad[i].text);
		CHECK_U64(found.size, 77);
	}
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK(find((struct launch_arguments){0, 2, "h:1", name}, ENV("X=")) == ESP_EINVAL);
	CHECK_STR(err.text, "the name of the job has 199 bytes, at most 127 fit");
}

int main(void)
{
	sources();
	launchers();
	alone();
	contradictions();
	told();
	open_mpi();
	mpich();
	slurm();
	kubernetes();
	complaints();
	return 0;
}
