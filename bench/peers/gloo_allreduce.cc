/*
 * gloo_allreduce.cc - Gloo's allreduce of floats over TCP on the loopback. contest.h tells what is measured.
 *
 *     gloo_allreduce --ranks 8 --variant bcube --sizes 4,1K,1M
 *
 * Variants: "ring" and "bcube" are the algorithms behind gloo::allreduce(), which PyTorch calls. The others are
 * Gloo's older classes, which are set up once per buffer and work in place; out of place they copy first:
 * "halving-doubling", "ring-chunked", and both with "-sync", where the caller reads its sockets itself instead of
 * being woken by Gloo's thread.
 *
 * The ranks are processes forked here. They find each other through files in a temporary folder, and meet
 * and add up numbers in shared memory, so that Gloo does nothing but what is measured.
 *
 * Under `espalier lab run` each host starts it once: then ESP_RANK and ESP_SIZE tell which rank it is, GLOO_FOLDER names
 * an empty folder that all of them see, and GLOO_INTERFACE the interface (e0).
 */
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "contest.h"

namespace
{

using Options = gloo::AllreduceOptions;

/* In memory that all ranks share. */
struct Meeting {
	pthread_barrier_t barrier;
	std::atomic<int64_t> totals[3]; /* in turns: one is added to while the next is cleared and the last one read */
};

/* A rank: its place in the contest, its connections and, for the older classes, the algorithm on its buffer. */
struct Rank {
	Meeting *meeting;
	std::string variant;
	std::shared_ptr<gloo::rendezvous::Context> gloo;
	std::unique_ptr<gloo::Algorithm> algorithm;
	unsigned turn = 0;

	bool is_new() const
	{
		return variant == "ring" || variant == "bcube";
	}
};

/* ---- how the ranks meet ---- */

/* file -1: for children alone */
void *map_meeting(int file)
{
	int anonymous = file < 0 ? MAP_ANONYMOUS : 0;
	void *memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | anonymous, file, 0);
	return memory == MAP_FAILED ? nullptr : memory;
}

Meeting *make_meeting(int ranks, int file)
{
	void *memory = map_meeting(file);
	if (memory == nullptr)
		return nullptr;
	Meeting *meeting = new (memory) Meeting();

	pthread_barrierattr_t attributes;
	pthread_barrierattr_init(&attributes);
	pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&meeting->barrier, &attributes, static_cast<unsigned>(ranks));
	pthread_barrierattr_destroy(&attributes);
	return meeting;
}

/* In a file: rank 0 makes it and then gives it its name, for which the others wait. */
Meeting *find_meeting(int rank, int ranks, const std::string &folder)
{
	std::string path = folder + "/meeting", unfinished = path + ".new";
	if (rank == 0) {
		int file = open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
		if (file < 0 || ftruncate(file, sizeof(Meeting)) != 0)
			return nullptr;
		Meeting *meeting = make_meeting(ranks, file);
		close(file);
		return rename(unfinished.c_str(), path.c_str()) == 0 ? meeting : nullptr;
	}
	int file;
	while ((file = open(path.c_str(), O_RDWR)) < 0)
		usleep(1000);
	void *memory = map_meeting(file);
	close(file);
	return static_cast<Meeting *>(memory);
}

void barrier(void *context)
{
	pthread_barrier_wait(&static_cast<Rank *>(context)->meeting->barrier);
}

int64_t total(void *context, int64_t value)
{
	Rank *rank = static_cast<Rank *>(context);
	std::atomic<int64_t> *totals = rank->meeting->totals;
	unsigned turn = rank->turn++;

	totals[(turn + 1) % 3] = 0;
	totals[turn % 3] += value;
	barrier(context);
	return totals[turn % 3];
}

/* ---- what is measured ---- */

void prepare(void *context, float *out, size_t count)
{
	Rank *rank = static_cast<Rank *>(context);

	rank->algorithm.reset();
	if (count == 0 || rank->is_new())
		return;
	std::vector<float *> buffers = {out};
	int elements = static_cast<int>(count);
	if (rank->variant.rfind("ring-chunked", 0) == 0)
		rank->algorithm = std::make_unique<gloo::AllreduceRingChunked<float>>(rank->gloo, buffers, elements);
	else
		rank->algorithm = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(rank->gloo, buffers, elements);
	/* A rank must not send before the others have somewhere to put it. */
	barrier(context);
}

void allreduce(void *context, const float *in, float *out, size_t count)
{
	Rank *rank = static_cast<Rank *>(context);

	if (rank->algorithm != nullptr) {
		if (in != out)
			memcpy(out, in, count * sizeof(float));
		rank->algorithm->run();
		return;
	}
	Options options(rank->gloo);
	options.setAlgorithm(rank->variant == "ring" ? Options::Algorithm::RING : Options::Algorithm::BCUBE);
	options.setInput(const_cast<float *>(in), count);
	options.setOutput(out, count);
	options.setReduceFunction(
		[](void *sum, const void *a, const void *b, size_t n) { gloo::sum<float>(sum, a, b, n); });
	gloo::allreduce(options);
}

/* ---- the life of a rank ---- */

std::shared_ptr<gloo::rendezvous::Context> connect(int rank, int ranks, const std::string &folder)
{
	const char *interface = getenv("GLOO_INTERFACE");
	gloo::transport::tcp::attr attributes;
	attributes.iface = interface != nullptr ? interface : "lo";
	attributes.ai_family = AF_INET;
	auto device = gloo::transport::tcp::CreateDevice(attributes);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
	gloo::rendezvous::FileStore store(folder);

	context->connectFullMesh(store, device);
	return context;
}

void read_sockets_in_caller(gloo::Context &context)
{
	for (int peer = 0; peer < context.size; peer++) {
		if (peer != context.rank)
			context.getPair(peer)->setSync(true, false);
	}
}

int run_rank(int number, const contest_options &options, Meeting *meeting, const std::string &folder)
{
	Rank rank;
	rank.meeting = meeting;
	rank.variant = options.variant;
	rank.gloo = connect(number, options.ranks, folder);
	if (rank.variant.find("-sync") != std::string::npos)
		read_sockets_in_caller(*rank.gloo);
	barrier(&rank);

	contestant contestant = {};
	contestant.rank = number;
	contestant.ranks = options.ranks;
	contestant.context = &rank;
	contestant.prepare = prepare;
	contestant.allreduce = allreduce;
	contestant.barrier = barrier;
	contestant.total = total;
	int64_t wrong = contest(&contestant, &options);
	barrier(&rank); /* nobody hangs up while others still listen */
	return wrong != 0;
}

/* Does not return: what Gloo would still tear down is not worth waiting for. */
[[noreturn]] void be_rank(int number, const contest_options &options, Meeting *meeting, const std::string &folder)
{
	int status = 1;

	try {
		status = run_rank(number, options, meeting, folder);
	} catch (const std::exception &error) {
		fprintf(stderr, "gloo_allreduce: rank %d: %s\n", number, error.what());
	}
	fflush(stdout);
	_exit(status);
}

/* Waits for all ranks; the first that fails takes the others with it, since they would wait for it. */
int reap(std::vector<pid_t> &ranks)
{
	int worst = 0, status;
	pid_t done;

	while ((done = wait(&status)) > 0) {
		bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
		for (pid_t &rank : ranks) {
			if (rank == done)
				rank = 0;
			else if (failed && rank != 0)
				kill(rank, SIGKILL);
		}
		worst |= failed;
	}
	return worst;
}

bool is_variant(const char *name)
{
	static const char *const variants[] = {"ring", "bcube", "halving-doubling", "ring-chunked",
	                                       "halving-doubling-sync", "ring-chunked-sync"};
	for (const char *variant : variants) {
		if (strcmp(name, variant) == 0)
			return true;
	}
	return false;
}

/* One rank of a job that somebody else starts. */
int be_launched(const char *number, contest_options &options)
{
	const char *folder = getenv("GLOO_FOLDER"), *size = getenv("ESP_SIZE");
	int rank = atoi(number);

	if (folder == nullptr || size == nullptr) {
		fprintf(stderr, "gloo_allreduce: ESP_RANK is set, but not ESP_SIZE and GLOO_FOLDER\n");
		return 2;
	}
	options.ranks = atoi(size);
	setenv("GLOO_INTERFACE", "e0", 0);
	Meeting *meeting = find_meeting(rank, options.ranks, folder);
	if (meeting == nullptr) {
		perror("gloo_allreduce");
		return 1;
	}
	be_rank(rank, options, meeting, folder);
}

} // namespace

int main(int argc, char **argv)
{
	contest_options options = contest_parse(argc, argv);
	std::string folder = std::filesystem::temp_directory_path() / "gloo_allreduce.XXXXXX";

	const char *launched = getenv("ESP_RANK");
	if (launched != nullptr && is_variant(options.variant))
		return be_launched(launched, options);
	if (options.ranks < 2 || !is_variant(options.variant)) {
		fprintf(stderr, "gloo_allreduce: give --ranks, 2 or more, and --variant ring, bcube, halving-doubling[-sync] "
		                "or ring-chunked[-sync]\n");
		return 2;
	}
	Meeting *meeting = make_meeting(options.ranks, -1);
	if (meeting == nullptr || mkdtemp(folder.data()) == nullptr) {
		perror("gloo_allreduce");
		return 1;
	}
	std::vector<pid_t> ranks;
	for (int rank = 0; rank < options.ranks; rank++) {
		pid_t pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			be_rank(rank, options, meeting, folder);
		}
		ranks.push_back(pid);
	}
	int status = reap(ranks);
	std::filesystem::remove_all(folder);
	return status;
}
