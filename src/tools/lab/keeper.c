#include "tools/lab/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/lab/ask.h"
#include "tools/lab/background.h"
#include "tools/lab/fabric.h"
#include "tools/lab/lab_switch.h"
#include "tools/lab/relay.h"
#include "tools/lab/sweep.h"

#define LISTENING 128
#define PATIENCE_S 2 /* for a client that has connected to send its question */
#define SETTLED 's'

struct house {
	struct fabric fabric;
	struct lab *lab;
	int memory;   /* file that lab is mapped from */
	int listener; /* for questions */
	int signals;
	int hold; /* -1: settled */
	pid_t background, through; /* flows in the background; the switch in user space */
	bool over;
};

/* ---- answers ---- */

static void send_answer(int fd, const struct answer *answer, const int *fds, size_t count)
{
	struct iovec place = {(void *)(uintptr_t)answer, sizeof(*answer)};
	union {
		char bytes[CMSG_SPACE(ASK_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct msghdr message = {.msg_iov = &place, .msg_iovlen = 1};
	if (count > 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		*header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
		                           .cmsg_len = CMSG_LEN(count * sizeof(int))};
		memcpy(CMSG_DATA(header), fds, count * sizeof(int));
	}
	while (sendmsg(fd, &message, MSG_NOSIGNAL) < 0 && errno == EINTR)
		continue; /* a client that has left does not need its answer */
}

static void answer_status(int fd, enum esp_status status, const struct error *err)
{
	struct answer answer = {.status = status};
	if (status != ESP_OK)
		snprintf(answer.text, sizeof(answer.text), "%s", err->text);
	send_answer(fd, &answer, NULL, 0);
}

static void send_map(struct house *house, int fd)
{
	const struct answer answer = {.status = ESP_OK};
	send_answer(fd, &answer, &house->memory, 1);
}

static void send_space(struct house *house, int fd, const char *name)
{
	struct answer answer = {.status = ESP_OK};
	int fds[ASK_FDS];
	size_t count = 0;
	uint32_t space = name ? lab_find_space(house->lab, name) : LAB_NOBODY;
	if (space == LAB_NOBODY) {
		answer.status = ESP_EINVAL;
		snprintf(answer.text, sizeof(answer.text),
		         "there is no '%.40s' in this lab; espalier lab status shows the hosts", name ? name : "");
	} else {
		for (; count < SPACE_PARTS; count++)
			fds[count] = house->fabric.spaces[space].fds[count];
		if (house->fabric.base.user >= 0)
			fds[count++] = house->fabric.base.user;
	}
	send_answer(fd, &answer, fds, count);
}

/* ---- settings ---- */

static enum esp_status restart_background(struct house *house, struct error *err)
{
	lab_background_stop(house->background);
	house->background = 0;
	return lab_background_start(&house->fabric, &house->background, err);
}

static enum esp_status set_links(struct house *house, const uint32_t *links, uint32_t count, enum lab_ways_given ways,
                                 char *const *words, size_t word_count, struct error *err)
{
	bool background = false;
	enum esp_status status = ESP_OK;
	for (uint32_t i = 0; i < count && status == ESP_OK; i++) {
		const struct lab_link *link = lab_link(house->lab, links[i]);
		struct lab_settings settings = link->set;
		status = lab_settings_apply(&settings, &link->made, ways, words, word_count, err);
		background = background || settings.background != link->set.background;
		if (status == ESP_OK)
			status = lab_fabric_apply(&house->fabric, links[i], &settings, err);
	}
	return status == ESP_OK && background ? restart_background(house, err) : status;
}

static enum esp_status set_target(struct house *house, const char *target, enum lab_ways_given ways, char *const *words,
                                  size_t count, struct error *err)
{
	uint32_t *links = calloc(house->lab->link_count, sizeof(*links)), link_count = 0;
	if (!links)
		return error_set(err, ESP_ENOMEM, "no memory");
	enum esp_status status = lab_targets(house->lab, target, links, &link_count, err);
	if (status == ESP_OK)
		status = set_links(house, links, link_count, ways, words, count, err);
	free(links);
	return status;
}

static bool heals_all(const char *target, char *const *words, size_t count)
{
	bool heals = false;
	for (size_t i = 0; i < count; i++)
		heals = heals || strcmp(words[i], "heal") == 0;
	return heals && strncmp(target, "all", 3) == 0 && (target[3] == '\0' || target[3] == ':');
}

/* Other settings for all are for the hosts' links only; but healing all includes the uplinks. */
static enum esp_status heal_uplinks(struct house *house, const char *target, enum lab_ways_given ways,
                                    struct error *err)
{
	static char heal[] = "heal";
	char *words[] = {heal}, racks[64];
	snprintf(racks, sizeof(racks), "racks%.40s", target + 3); /* keeps ":e1" */
	return lab_has_core(house->lab) ? set_target(house, racks, ways, words, 1, err) : ESP_OK;
}

static void set_target_links(struct house *house, int fd, const struct ask *ask, char *const *words, size_t count)
{
	struct error err = {0};
	enum lab_ways_given ways = (enum lab_ways_given)ask->flag;
	enum esp_status status;
	if (count < 2)
		status = error_set(&err, ESP_EINVAL, "a target and what to set are needed, as in node3 rate 200mbit");
	else
		status = set_target(house, words[0], ways, words + 1, count - 1, &err);
	if (status == ESP_OK && heals_all(words[0], words + 1, count - 1))
		status = heal_uplinks(house, words[0], ways, &err);
	answer_status(fd, status, &err);
}

/* ---- measuring ---- */

/* In a child, as the keeper has to answer further questions. */
static void run_check(struct house *house, int fd, const struct ask *ask)
{
	size_t count = lab_measure_plan(house->lab, ask->flag, NULL, 0);
	struct measure *measures = calloc(count ? count : 1, sizeof(*measures));
	const struct answer end = {.status = measures ? ESP_OK : ESP_ENOMEM};
	if (measures)
		lab_measure_plan(house->lab, ask->flag, measures, count);
	for (size_t i = 0; measures && i < count; i++) {
		lab_measure_run(&house->fabric, ask->seconds, &measures[i]);
		struct answer answer = {.more = 1, .count = (uint32_t)count, .measure = measures[i]};
		send_answer(fd, &answer, NULL, 0);
	}
	send_answer(fd, &end, NULL, 0);
	free(measures);
}

static void fork_check(struct house *house, int fd, const struct ask *ask)
{
	struct error err;
	pid_t pid = fork();
	if (pid == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "esp-measure");
		/*
		 * the lab's name is free only once all copies of the listener are closed, and this child ends after the
		 * keeper
		 */
		close(house->listener);
		run_check(house, fd, ask);
		_exit(0);
	}
	if (pid < 0)
		answer_status(fd, error_set(&err, ESP_EIO, "cannot start to measure: %s", strerror(errno)), &err);
}

/* ---- the end ---- */

static void stop_children(struct house *house)
{
	lab_background_stop(house->background);
	lab_switch_stop(house->through);
	house->through = 0;
	for (uint32_t i = 0; i < house->lab->link_count; i++)
		lab_relay_stop(lab_link(house->lab, i)->relay);
}

static void end_lab(struct house *house, int fd)
{
	struct answer answer = {.status = ESP_OK};
	lab_switch_stop(house->through);
	house->through = 0;
	answer.count = lab_sweep(house->fabric.spaces, lab_space_count(house->lab));
	stop_children(house);
	house->over = true;
	if (fd >= 0)
		send_answer(fd, &answer, NULL, 0);
}

/* ---- questions ---- */

static bool is_same_user(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

static void answer_question(struct house *house, int fd)
{
	const struct timeval patience = {PATIENCE_S, 0};
	struct ask ask;
	char *words[ASK_WORDS + 1];
	size_t count = 0;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	ssize_t got = is_same_user(fd) ? recv(fd, &ask, sizeof(ask), MSG_TRUNC) : -1;
	if (got < 0 || !lab_ask_decode(&ask, (size_t)got, words, &count))
		return;
	if (ask.kind == ASK_MAP)
		send_map(house, fd);
	else if (ask.kind == ASK_ENTER)
		send_space(house, fd, words[0]);
	else if (ask.kind == ASK_SET)
		set_target_links(house, fd, &ask, words, count);
	else if (ask.kind == ASK_CHECK)
		fork_check(house, fd, &ask);
	else
		end_lab(house, fd);
}

static void on_question(struct house *house)
{
	int fd = accept4(house->listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	answer_question(house, fd);
	close(fd);
}

static void on_child_end(struct house *house, pid_t pid)
{
	struct error unused;
	if (pid == house->through) {
		house->through = 0; /* jobs go on without it */
	} else if (pid == house->background) {
		house->background = 0;
		(void)!lab_background_start(&house->fabric, &house->background, &unused);
	} else {
		(void)lab_fabric_on_child_end(&house->fabric, pid);
	}
}

static void on_signal(struct house *house)
{
	struct signalfd_siginfo info;
	pid_t pid;
	while (read(house->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo != SIGCHLD)
			end_lab(house, -1);
		while (!house->over && (pid = waitpid(-1, NULL, WNOHANG)) > 0)
			on_child_end(house, pid);
	}
}

/* lab_keeper_settle() was called, or the caller is gone. */
static void on_hold(struct house *house)
{
	char word = 0;
	ssize_t got = read(house->hold, &word, 1);
	if (got < 0 && errno == EINTR)
		return;
	if (got != 1 || word != SETTLED)
		end_lab(house, -1);
	close(house->hold);
	house->hold = -1;
}

static void serve_lab(struct house *house)
{
	while (!house->over) {
		struct pollfd polls[] = {{house->signals, POLLIN, 0}, {house->hold, POLLIN, 0}, {house->listener, POLLIN, 0}};
		if (poll(polls, 3, -1) < 0)
			continue;
		if (polls[0].revents)
			on_signal(house);
		if (!house->over && polls[1].revents)
			on_hold(house);
		if (!house->over && polls[2].revents)
			on_question(house);
	}
}

/* ---- the beginning ---- */

static enum esp_status open_listener(struct house *house, const char *name, struct error *err)
{
	struct sockaddr_un address;
	socklen_t length = lab_ask_address(name, geteuid(), &address);
	house->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (house->listener >= 0 && bind(house->listener, (struct sockaddr *)&address, length) == 0 &&
	    listen(house->listener, LISTENING) == 0)
		return ESP_OK;
	if (errno == EADDRINUSE)
		return error_set(err, ESP_ESTATE, "there is a lab %s already: espalier lab down%s%s ends it, --name makes "
		                                  "another", name, strcmp(name, "lab") == 0 ? "" : " --name ",
		                 strcmp(name, "lab") == 0 ? "" : name);
	return error_set(err, ESP_EIO, "cannot listen for questions: %s", strerror(errno));
}

static enum esp_status open_memory(struct house *house, const struct lab_config *config, struct error *err)
{
	size_t bytes = lab_bytes(config);
	house->memory = memfd_create("espalier-lab", MFD_CLOEXEC);
	void *memory = MAP_FAILED;
	if (house->memory >= 0 && ftruncate(house->memory, (off_t)bytes) == 0)
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, house->memory, 0);
	if (memory == MAP_FAILED)
		return error_set(err, ESP_ENOMEM, "no memory for a lab: %s", strerror(errno));
	house->lab = memory;
	lab_init(house->lab, config);
	house->lab->keeper = getpid();
	return lab_place_switch(house->lab, err);
}

static enum esp_status open_signals(struct house *house, struct error *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_SETMASK, &set, NULL);
	house->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return house->signals >= 0 ? ESP_OK : error_set(err, ESP_EIO, "cannot watch signals: %s", strerror(errno));
}

/* Closes all descriptors of the caller: a process that reads the caller's output waits for its end. */
static void detach(int *hold)
{
	int nothing = open("/dev/null", O_RDWR);
	setsid();
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (nothing >= 0)
			dup2(nothing, fd);
	*hold = dup2(*hold, STDERR_FILENO + 1);
	(void)fcntl(*hold, F_SETFD, FD_CLOEXEC);
	close_range(STDERR_FILENO + 2, ~0U, 0);
	if (chdir("/") != 0)
		return; /* then the folder stays busy */
}

static bool is_abandoned(void *context)
{
	const struct house *house = context;
	struct pollfd poll_fd = {house->hold, POLLIN, 0};
	return poll(&poll_fd, 1, 0) > 0;
}

__attribute__((noreturn))
static void keeper_main(const struct lab_config *config, int hold)
{
	struct house house = {.memory = -1, .listener = -1, .signals = -1};
	struct error err = {0};
	char title[16];
	detach(&hold);
	house.hold = hold;
	snprintf(title, sizeof(title), "esp-lab-%.7s", config->name);
	prctl(PR_SET_NAME, title);
	enum esp_status status = open_signals(&house, &err);
	if (status == ESP_OK)
		status = open_listener(&house, config->name, &err);
	if (status == ESP_OK)
		status = open_memory(&house, config, &err);
	if (status == ESP_OK)
		status = lab_fabric_build(&house.fabric, house.lab, is_abandoned, &house, &err);
	if (status == ESP_OK)
		status = lab_switch_start(&house.fabric, &house.through, &err);
	answer_status(hold, status, &err);
	if (status == ESP_OK)
		serve_lab(&house);
	else if (house.lab)
		stop_children(&house);
	_exit(status == ESP_OK ? 0 : 1);
}

enum esp_status lab_keeper_start(struct keeper *keeper, const struct lab_config *config, struct error *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return error_set(err, ESP_EIO, "cannot make a pair of sockets: %s", strerror(errno));
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		keeper_main(config, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return error_set(err, ESP_EIO, "cannot start a process: %s", strerror(errno));
	}
	*keeper = (struct keeper){pid, ends[0]};
	return ESP_OK;
}

enum esp_status lab_keeper_result(struct keeper *keeper, struct error *err)
{
	struct answer answer;
	ssize_t got = recv(keeper->hold, &answer, sizeof(answer), 0);
	if (got != (ssize_t)sizeof(answer))
		return error_set(err, ESP_EIO, "the process of the lab has ended");
	return answer.status == ESP_OK ? ESP_OK : error_set(err, (enum esp_status)answer.status, "%.255s", answer.text);
}

void lab_keeper_settle(struct keeper *keeper)
{
	const char word = SETTLED;
	while (send(keeper->hold, &word, 1, MSG_NOSIGNAL) < 0 && errno == EINTR)
		continue;
	close(keeper->hold);
	keeper->hold = -1;
}

void lab_keeper_abandon(struct keeper *keeper)
{
	if (keeper->pid <= 0)
		return;
	close(keeper->hold);
	while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	*keeper = (struct keeper){0, -1};
}
