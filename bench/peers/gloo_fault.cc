/*
 * gloo_fault.cc - one of Gloo's ranks is killed or stopped in a loop of allreduces: when do the others raise an error?
 *
 *     gloo_fault --ranks 3 --way stop --timeout-ms 10000 --victim 1 --delay-us 3000 --count 1000
 *
 * The ranks are processes forked here, which find each other through files in a temporary folder. Prints one line of JSON: the times
 * from the signal to the error on every survivor, in milliseconds, how many of them had none within the timeout and five
 * seconds, and the text of one error. Gloo has no way to go on.
 */
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace
{

constexpr int RANKS_MOST = 64;
constexpr uint64_t NS_PER_MS = 1000000;

/* In memory that all ranks share. */
struct Witness {
	std::atomic<uint32_t> calls;
	std::atomic<uint64_t> error_ns;
	std::atomic<uint32_t> wrong;
	char text[200];
};

struct Options {
	int ranks = 3, victim = 1;
	bool stops = false;
	uint64_t timeout_ms = 10000, delay_us = 0, count = 1000;
};

uint64_t now_ns()
{
	timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return static_cast<uint64_t>(now.tv_sec) * 1000 * NS_PER_MS + static_cast<uint64_t>(now.tv_nsec);
}

void play(int rank, const Options &options, Witness &witness, const std::string &folder)
{
	gloo::transport::tcp::attr attributes;
	attributes.iface = "lo";
	attributes.ai_family = AF_INET;
	auto device = gloo::transport::tcp::CreateDevice(attributes);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, options.ranks);
	gloo::rendezvous::FileStore store(folder);

	context->setTimeout(std::chrono::milliseconds(options.timeout_ms));
	context->connectFullMesh(store, device);
	std::vector<float> data(options.count);
	for (;;) {
		std::fill(data.begin(), data.end(), 1.0f);
		gloo::AllreduceOptions call(context);
		call.setOutput(data.data(), data.size());
		call.setReduceFunction([](void *sum, const void *a, const void *b, size_t n) { gloo::sum<float>(sum, a, b, n); });
		gloo::allreduce(call);
		for (float element : data)
			witness.wrong += element != static_cast<float>(options.ranks);
		witness.calls++;
	}
}

[[noreturn]] void be_rank(int rank, const Options &options, Witness &witness, const std::string &folder)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	try {
		play(rank, options, witness, folder);
	} catch (const std::exception &error) {
		witness.error_ns = now_ns();
		snprintf(witness.text, sizeof(witness.text), "%s", error.what());
	}
	_exit(0);
}

uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0') {
		fprintf(stderr, "gloo_fault: '%s' is not a number\n", text);
		exit(2);
	}
	return value;
}

Options parse(int argc, char **argv)
{
	Options options;

	for (int i = 1; i + 1 < argc; i += 2) {
		std::string name = argv[i];
		if (name == "--way")
			options.stops = strcmp(argv[i + 1], "stop") == 0;
		else if (name == "--ranks")
			options.ranks = static_cast<int>(number(argv[i + 1]));
		else if (name == "--victim")
			options.victim = static_cast<int>(number(argv[i + 1]));
		else if (name == "--timeout-ms")
			options.timeout_ms = number(argv[i + 1]);
		else if (name == "--delay-us")
			options.delay_us = number(argv[i + 1]);
		else if (name == "--count")
			options.count = number(argv[i + 1]);
	}
	if (argc % 2 == 0 || options.ranks < 2 || options.ranks > RANKS_MOST || options.victim >= options.ranks || options.count == 0) {
		fprintf(stderr, "usage: gloo_fault [--ranks N] [--way kill|stop] [--victim RANK] [--timeout-ms N] [--delay-us N] "
		                "[--count N]\n");
		exit(2);
	}
	return options;
}

/* Until all survivors have an error; false: not in time. */
bool await_errors(const Options &options, const Witness *witnesses, uint64_t until)
{
	for (;;) {
		int without = 0;
		for (int rank = 0; rank < options.ranks; rank++)
			without += rank != options.victim && witnesses[rank].error_ns == 0;
		if (without == 0 || now_ns() >= until)
			return without == 0;
		usleep(200);
	}
}

bool all_play(const Options &options, const Witness *witnesses)
{
	for (int rank = 0; rank < options.ranks; rank++) {
		if (witnesses[rank].calls < 3)
			return false;
	}
	return true;
}

void print(const Options &options, const Witness *witnesses, uint64_t struck)
{
	int hung = 0;
	uint32_t wrong = 0;
	const char *text = "", *comma = "";

	printf("{\"error_ms\": [");
	for (int rank = 0; rank < options.ranks; rank++) {
		const Witness &witness = witnesses[rank];
		wrong += witness.wrong;
		if (rank == options.victim)
			continue;
		hung += witness.error_ns == 0;
		if (witness.error_ns == 0)
			continue;
		uint64_t error = witness.error_ns;
		printf("%s%.3f", comma, error > struck ? static_cast<double>(error - struck) / static_cast<double>(NS_PER_MS) : 0.0);
		comma = ", ";
		text = witness.text;
	}
	printf("], \"hung\": %d, \"wrong\": %u, \"text\": \"", hung, wrong);
	for (const char *at = text; *at; at++)
		putchar(*at == '"' || *at == '\\' || *at < ' ' ? ' ' : *at);
	printf("\"}\n");
}

} // namespace

int main(int argc, char **argv)
{
	Options options = parse(argc, argv);
	std::string folder = std::filesystem::temp_directory_path() / "gloo_fault.XXXXXX";
	void *memory = mmap(nullptr, sizeof(Witness) * RANKS_MOST, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mkdtemp(folder.data()) == nullptr) {
		perror("gloo_fault");
		return 1;
	}
	Witness *witnesses = new (memory) Witness[RANKS_MOST]();
	std::vector<pid_t> ranks;
	for (int rank = 0; rank < options.ranks; rank++) {
		pid_t pid = fork();
		if (pid == 0)
			be_rank(rank, options, witnesses[rank], folder);
		ranks.push_back(pid);
	}
	uint64_t patience = now_ns() + 60000 * NS_PER_MS;
	while (!all_play(options, witnesses) && now_ns() < patience)
		usleep(200);
	usleep(static_cast<useconds_t>(options.delay_us));
	uint64_t struck = now_ns();
	kill(ranks[static_cast<size_t>(options.victim)], options.stops ? SIGSTOP : SIGKILL);
	await_errors(options, witnesses, struck + (options.timeout_ms + 5000) * NS_PER_MS);
	print(options, witnesses, struck);
	for (pid_t pid : ranks)
		kill(pid, SIGKILL); /* ours, and not yet waited for */
	while (wait(nullptr) > 0)
		;
	std::filesystem::remove_all(folder);
	return 0;
}
