#include "node/control/local_socket.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/net/interface.h"

socklen_t local_socket_name(const struct node_info *info, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	/*
	 * Abstract: the first byte is zero, the length ends the name, and no file is left on disk. Any user may bind any
	 * such name, so this one cannot be guessed.
	 */
	int length = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "espalier-%u-%u-%016" PRIx64, info->port,
	                      info->pid, info->nonce);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

enum esp_status control_local_socket(const struct node_info *info, int *out_fd, struct error *err)
{
	struct sockaddr_un name;
	socklen_t length = local_socket_name(info, &name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return error_set(err, errno == EMFILE || errno == ENFILE ? ESP_ELIMIT : ESP_EIO, "no Unix socket: %s",
		                 strerror(errno));
	if (bind(fd, (struct sockaddr *)&name, length) != 0 || listen(fd, SOMAXCONN) != 0) {
		error_set(err, ESP_EIO, "cannot listen on the Unix socket @%s: %s", name.sun_path + 1, strerror(errno));
		close(fd);
		return err->status;
	}
	*out_fd = fd;
	return ESP_OK;
}

socklen_t node_info_socket_name(const struct node_info *info, uint32_t address, struct sockaddr_storage *out)
{
	return node_address_to(&info->addresses[address], info->port, 0, out);
}
