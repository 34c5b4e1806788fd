#include "tools/lab/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/lab/fault.h"

#define BATCH 32u
#define ROUNDS 8               /* batches from one side before the other side's turn */
#define WAITING_MAX 131072u    /* delayed frames: 1 Gbit/s of full frames for a second and a half */
#define SOCKET_BYTES (8 << 20) /* socket buffers, for the time in which the relay is not scheduled */
#define LATE_MOST_NS (200 * NS_PER_US) /* a frame is sent at most this much early */

struct frame {
	uint32_t length;
	struct frame *next; /* in the list of unused ones */
	uint8_t bytes[];
};

/* One direction. */
struct passage {
	int in, out; /* sockets; out is the other direction's in */
	struct fault fault;
	struct lab_faults faults; /* a copy, of relay.version */
	struct queue queue;
	struct lab_counts *counts;
	struct frame *stuck; /* due, but the device's queue is full */
};

struct relay {
	struct lab_link *link;
	uint32_t version;
	size_t frame_bytes;
	uint64_t late_ns; /* average delay of wake-ups: the relay asks for a time earlier by this */
	struct passage ways[LAB_WAYS];
	struct frame *unused;
	struct frame *fresh[BATCH]; /* to receive into */
};

/* ---- frames ---- */

static struct frame *get_frame(struct relay *relay)
{
	struct frame *frame = relay->unused;
	if (frame)
		relay->unused = frame->next;
	else
		frame = malloc(sizeof(*frame) + relay->frame_bytes);
	return frame;
}

static void put_frame(struct relay *relay, struct frame *frame)
{
	frame->next = relay->unused;
	relay->unused = frame;
}

static void add_count(uint64_t *counter, uint64_t more)
{
	/* Other processes only read: one writer, and an older value does no harm. */
	__atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

/* Takes frame. */
static void delay_frame(struct relay *relay, struct passage *way, struct frame *frame, uint64_t leave_ns)
{
	if (lab_queue_push(&way->queue, leave_ns, frame, WAITING_MAX))
		return;
	add_count(&way->counts->overrun, 1);
	put_frame(relay, frame);
}

static struct frame *copy_of(struct relay *relay, const struct frame *frame)
{
	struct frame *copy = get_frame(relay);
	if (!copy)
		return NULL;
	copy->length = frame->length;
	memcpy(copy->bytes, frame->bytes, frame->length);
	return copy;
}

/* Takes frame. */
static void relay_frame(struct relay *relay, struct passage *way, struct frame *frame, uint64_t now_ns)
{
	struct fate fate = lab_fault_draw(&way->fault, &way->faults, frame->length, now_ns);
	add_count(&way->counts->frames, 1);
	if (fate.lost) {
		add_count(&way->counts->lost, 1);
		put_frame(relay, frame);
		return;
	}
	if (fate.corrupted) {
		frame->bytes[fate.bit / 8] ^= (uint8_t)(1u << fate.bit % 8);
		add_count(&way->counts->corrupted, 1);
	}
	if (fate.late)
		add_count(&way->counts->reordered, 1);
	struct frame *copy = fate.duplicated ? copy_of(relay, frame) : NULL;
	delay_frame(relay, way, frame, fate.leave_ns);
	if (copy) {
		add_count(&way->counts->duplicated, 1);
		delay_frame(relay, way, copy, fate.leave_ns);
	}
}

/* ---- receiving and sending ---- */

static bool refill(struct relay *relay)
{
	for (size_t i = 0; i < BATCH; i++)
		if (!relay->fresh[i] && !(relay->fresh[i] = get_frame(relay)))
			return false;
	return true;
}

static uint64_t nanoseconds(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_nsec;
}

/*
 * The arrival time from the kernel's timestamp, so that a late wake-up adds no delay to the link. Timestamps
 * are in wall-clock time; real_ns is its current value.
 */
static uint64_t arrival_ns(struct msghdr *message, uint64_t now_ns, uint64_t real_ns)
{
	struct timespec noted;
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_TIMESTAMPNS)
		return now_ns;
	memcpy(&noted, CMSG_DATA(header), sizeof(noted));
	uint64_t age_ns = real_ns - nanoseconds(&noted);
	return age_ns < NS_PER_S && age_ns < now_ns ? now_ns - age_ns : now_ns; /* the wall clock may jump */
}

/* True: there may be more. */
static bool receive_frames(struct relay *relay, struct passage *way)
{
	struct mmsghdr messages[BATCH] = {0};
	struct iovec places[BATCH];
	struct timespec real;
	union {
		char bytes[CMSG_SPACE(sizeof(struct timespec))];
		struct cmsghdr align;
	} notes[BATCH];
	if (!refill(relay))
		return false;
	for (size_t i = 0; i < BATCH; i++) {
		places[i] = (struct iovec){relay->fresh[i]->bytes, relay->frame_bytes};
		messages[i].msg_hdr = (struct msghdr){
			.msg_iov = &places[i], .msg_iovlen = 1, .msg_control = &notes[i], .msg_controllen = sizeof(notes[i])};
	}
	int got = recvmmsg(way->in, messages, BATCH, MSG_DONTWAIT, NULL);
	uint64_t now_ns = clock_now_ns();
	clock_gettime(CLOCK_REALTIME, &real);
	for (int i = 0; i < got; i++) {
		struct frame *frame = relay->fresh[i];
		relay->fresh[i] = NULL;
		frame->length = messages[i].msg_len;
		relay_frame(relay, way, frame, arrival_ns(&messages[i].msg_hdr, now_ns, nanoseconds(&real)));
	}
	return got == (int)BATCH;
}

/* False: the device's queue is full. Other errors drop the frame, as a switch does. */
static bool send_frame(struct passage *way, const struct frame *frame)
{
	ssize_t sent = send(way->out, frame->bytes, frame->length, MSG_DONTWAIT);
	if (sent >= 0 || (errno != EAGAIN && errno != EINTR))
		return true;
	return false;
}

/* Also sends frames that are due before the next wake-up. */
static void send_due(struct relay *relay, struct passage *way, uint64_t due_ns)
{
	struct frame *frame = way->stuck ? way->stuck : lab_queue_pop(&way->queue, due_ns);
	way->stuck = NULL;
	for (; frame; frame = lab_queue_pop(&way->queue, due_ns)) {
		if (!send_frame(way, frame)) {
			way->stuck = frame;
			return;
		}
		put_frame(relay, frame);
	}
}

/* Counts frames that the kernel dropped because the relay was too slow. */
static void count_overruns(struct passage *way)
{
	struct tpacket_stats stats = {0};
	socklen_t length = sizeof(stats);
	if (getsockopt(way->in, SOL_PACKET, PACKET_STATISTICS, &stats, &length) == 0 && stats.tp_drops)
		add_count(&way->counts->overrun, stats.tp_drops);
}

/* ---- the loop ---- */

/* A seqlock: the keeper makes the version odd, writes, makes it even. */
static void read_settings(struct relay *relay)
{
	uint32_t before = __atomic_load_n(&relay->link->version, __ATOMIC_ACQUIRE);
	struct lab_faults faults[LAB_WAYS];
	if (before == relay->version || before % 2)
		return;
	memcpy(faults, relay->link->set.faults, sizeof(faults));
	/* adds 0: an acquire load would not keep the reads above from moving behind it */
	if (__atomic_fetch_add(&relay->link->version, 0, __ATOMIC_ACQ_REL) != before)
		return;
	relay->version = before;
	for (int i = 0; i < LAB_WAYS; i++)
		relay->ways[i].faults = faults[i];
}

/* A timer has expired: averages how late the wake-up was. */
static void note_lateness(struct relay *relay, uint64_t wanted_ns, uint64_t now_ns)
{
	uint64_t late_ns = now_ns > wanted_ns ? now_ns - wanted_ns : 0;
	late_ns = late_ns < LATE_MOST_NS ? late_ns : LATE_MOST_NS;
	relay->late_ns = (relay->late_ns * 7 + late_ns) / 8;
}

static void wait_for_something(struct relay *relay)
{
	struct pollfd polls[LAB_WAYS];
	uint64_t now_ns = clock_now_ns();
	uint64_t next_ns = UINT64_MAX;
	for (int i = 0; i < LAB_WAYS; i++) {
		const struct passage *way = &relay->ways[i], *other = &relay->ways[1 - i];
		uint64_t due_ns = way->stuck ? UINT64_MAX : lab_queue_next_ns(&way->queue);
		next_ns = due_ns < next_ns ? due_ns : next_ns;
		/* this direction's `in` is the other direction's `out` */
		polls[i] = (struct pollfd){way->in, (short)(POLLIN | (other->stuck ? POLLOUT : 0)), 0};
	}
	uint64_t wake_ns = next_ns > relay->late_ns ? next_ns - relay->late_ns : 0;
	uint64_t wait_ns = wake_ns > now_ns ? wake_ns - now_ns : 0;
	struct timespec limit = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
	int ready = ppoll(polls, LAB_WAYS, next_ns == UINT64_MAX ? NULL : &limit, NULL);
	if (ready == 0 && wait_ns > 0)
		note_lateness(relay, wake_ns, clock_now_ns());
}

__attribute__((noreturn))
static void run_relay(struct relay *relay)
{
	for (;;) {
		read_settings(relay);
		for (int i = 0; i < LAB_WAYS; i++) {
			struct passage *way = &relay->ways[i];
			for (int round = 0; round < ROUNDS && receive_frames(relay, way); round++)
				continue;
			count_overruns(way);
		}
		uint64_t due_ns = clock_now_ns() + relay->late_ns;
		for (int i = 0; i < LAB_WAYS; i++)
			send_due(relay, &relay->ways[i], due_ns);
		wait_for_something(relay);
	}
}

/* ---- starting and stopping ---- */

static int open_device(const char *device)
{
	int bytes = SOCKET_BYTES, on = 1;
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(device)};
	/* With protocol 0 until it is bound: otherwise it would receive from all devices. */
	int fd = address.sll_ifindex ? socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0) : -1;
	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	(void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) != 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool open_relay(struct relay *relay, struct lab *lab, uint32_t number, const char *device)
{
	char inner[LAB_DEVICE_TEXT + 4];
	snprintf(inner, sizeof(inner), "%s-r", device);
	*relay = (struct relay){.link = lab_link(lab, number), .version = UINT32_MAX, .frame_bytes = lab->config.mtu + 64u};
	int outside = open_device(device), inside = open_device(inner);
	if (outside < 0 || inside < 0)
		return false;
	for (int i = 0; i < LAB_WAYS; i++) {
		struct passage *way = &relay->ways[i];
		way->in = i == LAB_FROM ? outside : inside;
		way->out = i == LAB_FROM ? inside : outside;
		way->counts = &relay->link->counts[i];
		lab_fault_init(&way->fault, lab->config.seed, number, (enum lab_way)i);
	}
	read_settings(relay);
	return true;
}

/* In the child. */
__attribute__((noreturn))
static void relay_main(struct lab *lab, uint32_t link, const char *device, int net, int report)
{
	struct relay relay = {0};
	char name[LAB_LINK_TEXT], title[16];
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1UL);
	snprintf(title, sizeof(title), "esp-%.11s", lab_link_name(lab, link, name));
	prctl(PR_SET_NAME, title);
	bool entered = setns(net, CLONE_NEWNET) == 0;
	/* The keeper's namespaces and its listening socket must close with the keeper. */
	close_range(STDERR_FILENO + 1, (unsigned)report - 1, 0);
	close_range((unsigned)report + 1, ~0U, 0);
	bool opened = entered && open_relay(&relay, lab, link, device);
	int failed = opened ? 0 : errno ? errno : EIO;
	if (write(report, &failed, sizeof(failed)) != (ssize_t)sizeof(failed) || !opened)
		_exit(1);
	close(report);
	run_relay(&relay);
}

enum esp_status lab_relay_start(struct lab *lab, uint32_t link, const char *device, int net, pid_t *out_pid,
                                struct error *err)
{
	int report[2], failed = 0;
	if (pipe2(report, O_CLOEXEC) != 0)
		return error_set(err, ESP_EIO, "cannot make a pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0)
		relay_main(lab, link, device, net, report[1]);
	close(report[1]);
	ssize_t got = pid > 0 ? read(report[0], &failed, sizeof(failed)) : -1;
	close(report[0]);
	if (got == (ssize_t)sizeof(failed) && !failed) {
		*out_pid = pid;
		return ESP_OK;
	}
	if (pid > 0)
		lab_relay_stop(pid);
	return error_set(err, ESP_EIO, "cannot start a relay at %s: %s", device, strerror(failed ? failed : errno));
}

void lab_relay_stop(pid_t pid)
{
	if (pid <= 0) /* none, or one that could not be started again: kill() takes such numbers for many processes */
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}
