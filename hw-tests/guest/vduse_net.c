// SPDX-License-Identifier: Apache-2.0
/*
 * vduse-net NAME MAC: a vDPA network device in user space (VDUSE). A STUB: it answers the kernel's
 * control requests and moves no packets.
 *
 * It prints "ready" when `vdpa dev add name NAME mgmtdev vduse` can use the device, and serves until it
 * is killed. Afterwards, remove the device with `vduse-net --destroy NAME`.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/vduse.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_net.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { QUEUES = 2, QUEUE_SIZE = 256, ALIGNMENT = 4096, VENDOR = 0x1af4, OPEN_TRIES = 250 };

static int fail(const char *what, const char *name)
{
	fprintf(stderr, "vduse-net: %s: %s: %s\n", name, what, strerror(errno));
	return 1;
}

static int open_control(void)
{
	__u64 version = VDUSE_API_VERSION;
	int control = open("/dev/vduse/control", O_RDWR | O_CLOEXEC);

	if (control < 0 || ioctl(control, VDUSE_SET_API_VERSION, &version))
		return -1;
	return control;
}

static int create(int control, const char *name, const unsigned char mac[6])
{
	struct virtio_net_config net = { .status = VIRTIO_NET_S_LINK_UP, .max_virtqueue_pairs = 1, .mtu = 1500 };
	struct vduse_dev_config *config = calloc(1, sizeof(*config) + sizeof(net));
	int result;

	if (!config)
		return -1;
	memcpy(net.mac, mac, sizeof(net.mac));
	strncpy(config->name, name, sizeof(config->name) - 1);
	config->vendor_id = VENDOR;
	config->device_id = VIRTIO_ID_NET;
	config->vq_num = QUEUES;
	config->vq_align = ALIGNMENT;
	config->features = 1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_F_ACCESS_PLATFORM |
			   1ULL << VIRTIO_NET_F_MAC | 1ULL << VIRTIO_NET_F_STATUS | 1ULL << VIRTIO_NET_F_MTU;
	config->config_size = sizeof(net);
	memcpy(config->config, &net, sizeof(net));
	result = ioctl(control, VDUSE_CREATE_DEV, config);
	free(config);
	return result;
}

/* The node appears a moment after the device does. */
static int open_device(const char *name)
{
	char path[64 + VDUSE_NAME_MAX];
	int device = -1;

	snprintf(path, sizeof(path), "/dev/vduse/%s", name);
	for (int i = 0; i < OPEN_TRIES && device < 0; i++) {
		device = open(path, O_RDWR | O_CLOEXEC);
		if (device < 0)
			usleep(20000);
	}
	return device;
}

static int serve(int device)
{
	struct vduse_dev_request request;

	while (read(device, &request, sizeof(request)) == sizeof(request)) {
		struct vduse_dev_response response = { .request_id = request.request_id, .result = VDUSE_REQ_RESULT_OK };

		if (request.type == VDUSE_GET_VQ_STATE)
			response.vq_state.index = request.vq_state.index;
		if (write(device, &response, sizeof(response)) != sizeof(response))
			return -1;
	}
	return -1;
}

int main(int argc, char **argv)
{
	unsigned char mac[6];
	const char *name;
	int control, device;

	if (argc == 3 && !strcmp(argv[1], "--destroy")) {
		char destroyed[VDUSE_NAME_MAX] = "";

		strncpy(destroyed, argv[2], sizeof(destroyed) - 1);
		control = open_control();
		return control < 0 || ioctl(control, VDUSE_DESTROY_DEV, destroyed) ? fail("cannot be destroyed", argv[2]) : 0;
	}
	if (argc != 3 || strlen(argv[1]) >= VDUSE_NAME_MAX ||
	    sscanf(argv[2], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]) != 6) {
		fprintf(stderr, "usage: vduse-net NAME MAC | vduse-net --destroy NAME\n");
		return 2;
	}
	name = argv[1];
	control = open_control();
	if (control < 0)
		return fail("/dev/vduse/control cannot be opened; modprobe vduse", name);
	if (create(control, name, mac))
		return fail("cannot be created", name);
	device = open_device(name);
	if (device < 0)
		return fail("its node in /dev/vduse cannot be opened", name);
	for (unsigned int i = 0; i < QUEUES; i++) {
		struct vduse_vq_config queue = { .index = i, .max_size = QUEUE_SIZE };

		if (ioctl(device, VDUSE_VQ_SETUP, &queue))
			return fail("queue cannot be set up", name);
	}
	puts("ready");
	fflush(stdout);
	return serve(device) ? fail("the kernel's requests ended", name) : 0;
}
