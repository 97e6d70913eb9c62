// SPDX-License-Identifier: GPL-2.0
/*
 * ib_stub: an RDMA device on any PCI function. A STUB: it carries no traffic.
 *
 * The kernel's own ib_core, with its sysfs tree and netlink families, uverbs and ib_ipoib run above it.
 * ib_ipoib has its 20-byte addresses and the rtnetlink settings of a PF's VFs (IFLA_VF_IB_NODE_GUID and
 * IFLA_VF_IB_PORT_GUID). Only queue pairs are fake: they take receive buffers, return them flushed, and
 * refuse to send.
 *
 *   echo "add 0000:02:00.0 ib"   > /sys/module/ib_stub/parameters/control
 *   echo "add 0000:01:10.0 roce" > /sys/module/ib_stub/parameters/control   (on the function's netdev)
 *   echo "del 0000:02:00.0"      > /sys/module/ib_stub/parameters/control
 *   echo "keep 0000:02:00.0"     > /sys/module/ib_stub/parameters/control   (refuses to change its VFs' GUIDs)
 *   echo "let 0000:02:00.0"      > /sys/module/ib_stub/parameters/control   (allows it again)
 *
 * The device of function DDDD:BB:DD.F has the node GUID 024a:46DD:DDBB:FF00, where FF is its devfn, and
 * the port GUID 024a:46DD:DDBB:FF01. The two differ, so that a test notices a mix-up.
 *
 * It is also a PCI driver, for functions whose driver_override names it. A VF gets the GUIDs that its PF
 * has set for it at the time of the bind, if any. As on real hardware, later settings take effect at the
 * next bind.
 */
#include <linux/if_link.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <rdma/ib_verbs.h>

#define STUB_GUID_PREFIX	0x024a460000000000ULL
#define STUB_SUBNET_PREFIX	0xfe80000000000000ULL
#define STUB_PORT		1
#define STUB_PKEYS		128
#define STUB_GIDS		8
#define STUB_VFS		64
#define STUB_RECEIVES		1024

struct stub_vf {
	u64 node_guid;
	u64 port_guid;
	int link_state;
};

struct stub_device {
	struct ib_device ib;
	struct list_head list;
	struct pci_dev *pdev;
	struct net_device *netdev;	/* the port's interface for RoCE, otherwise NULL */
	__be64 port_guid;
	bool keeps;			/* the GUIDs of its VFs */
	struct stub_vf vfs[STUB_VFS];
};

struct stub_qp {
	struct ib_qp ib;
	struct list_head list;
	enum ib_qp_state state;
	unsigned int receives;
	u64 wr_id[STUB_RECEIVES];
};

struct stub_pd { struct ib_pd ib; };
struct stub_ah { struct ib_ah ib; };
struct stub_cq { struct ib_cq ib; };
struct stub_ucontext { struct ib_ucontext ib; };

static DEFINE_MUTEX(stub_devices_lock);
static LIST_HEAD(stub_devices);

/* Completion queues find their queue pairs here. */
static DEFINE_SPINLOCK(stub_qps_lock);
static LIST_HEAD(stub_qps);
static atomic_t stub_next_qpn = ATOMIC_INIT(0x100);

static struct stub_device *to_stub(struct ib_device *ib)
{
	return container_of(ib, struct stub_device, ib);
}

static struct stub_qp *to_stub_qp(struct ib_qp *ib)
{
	return container_of(ib, struct stub_qp, ib);
}

/* The device and its port */

static int stub_query_device(struct ib_device *ib, struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = 1ULL << 32;
	attr->sys_image_guid = ib->node_guid;
	attr->page_size_cap = PAGE_SIZE;
	attr->max_mr_size = U64_MAX;
	attr->max_pd = 256;
	attr->max_mr = 256;
	attr->max_ah = 256;
	attr->max_cq = 256;
	attr->max_cqe = 32768;
	attr->max_qp = 256;
	attr->max_qp_wr = 8192;
	attr->max_send_sge = 16;
	attr->max_recv_sge = 16;
	attr->max_pkeys = STUB_PKEYS;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	return 0;
}

static int stub_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	bool roce = to_stub(ib)->netdev;

	attr->state = IB_PORT_ACTIVE;
	attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = roce ? IB_MTU_1024 : IB_MTU_4096;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	attr->max_msg_sz = SZ_1G;
	attr->gid_tbl_len = STUB_GIDS;
	attr->pkey_tbl_len = roce ? 1 : STUB_PKEYS;
	attr->lid = roce ? 0 : 1;
	attr->sm_lid = roce ? 0 : 1;
	return 0;
}

static int stub_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	bool roce = to_stub(ib)->netdev;

	immutable->gid_tbl_len = STUB_GIDS;
	immutable->pkey_tbl_len = roce ? 1 : STUB_PKEYS;
	/* No management datagrams, because there is no other port. */
	immutable->core_cap_flags = roce ? RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP | RDMA_CORE_CAP_ETH_AH :
					   RDMA_CORE_CAP_PROT_IB;
	return 0;
}

static enum rdma_link_layer stub_link_layer(struct ib_device *ib, u32 port)
{
	return to_stub(ib)->netdev ? IB_LINK_LAYER_ETHERNET : IB_LINK_LAYER_INFINIBAND;
}

static int stub_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	*pkey = index ? 0x8000 | index : 0xffff;
	return 0;
}

static int stub_query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (index == 0) {
		gid->global.subnet_prefix = cpu_to_be64(STUB_SUBNET_PREFIX);
		gid->global.interface_id = to_stub(ib)->port_guid;
	}
	return 0;
}

static int stub_add_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static int stub_del_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static void stub_firmware(struct ib_device *ib, char *text)
{
	strscpy(text, "0.0.0", IB_FW_VERSION_NAME_MAX);
}

/* The VFs' settings on the PF's netdev */

static struct stub_vf *stub_vf(struct ib_device *ib, int vf)
{
	return vf >= 0 && vf < STUB_VFS ? &to_stub(ib)->vfs[vf] : NULL;
}

static int stub_get_vf_config(struct ib_device *ib, int index, u32 port, struct ifla_vf_info *info)
{
	struct stub_vf *vf = stub_vf(ib, index);

	if (!vf)
		return -EINVAL;
	memset(info, 0, sizeof(*info));
	info->vf = index;
	info->linkstate = vf->link_state;
	return 0;
}

static int stub_set_vf_link_state(struct ib_device *ib, int index, u32 port, int state)
{
	struct stub_vf *vf = stub_vf(ib, index);

	if (!vf)
		return -EINVAL;
	vf->link_state = state;
	return 0;
}

static int stub_get_vf_stats(struct ib_device *ib, int index, u32 port, struct ifla_vf_stats *stats)
{
	return 0;
}

static int stub_get_vf_guid(struct ib_device *ib, int index, u32 port, struct ifla_vf_guid *node,
			    struct ifla_vf_guid *port_guid)
{
	struct stub_vf *vf = stub_vf(ib, index);

	if (!vf)
		return -EINVAL;
	node->vf = index;
	node->guid = vf->node_guid;
	port_guid->vf = index;
	port_guid->guid = vf->port_guid;
	return 0;
}

static int stub_set_vf_guid(struct ib_device *ib, int index, u32 port, u64 guid, int type)
{
	struct stub_vf *vf = stub_vf(ib, index);

	if (!vf)
		return -EINVAL;
	if (to_stub(ib)->keeps)
		return -EOPNOTSUPP;
	switch (type) {
	case IFLA_VF_IB_NODE_GUID:
		vf->node_guid = guid;
		return 0;
	case IFLA_VF_IB_PORT_GUID:
		vf->port_guid = guid;
		return 0;
	default:
		return -EINVAL;
	}
}

/* Objects without content */

static int stub_alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	return 0;
}

static void stub_dealloc_ucontext(struct ib_ucontext *context)
{
}

static void stub_disassociate_ucontext(struct ib_ucontext *context)
{
}

static int stub_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int stub_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int stub_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *attr, struct ib_udata *udata)
{
	return 0;
}

static int stub_destroy_ah(struct ib_ah *ah, u32 flags)
{
	return 0;
}

static struct ib_mr *stub_get_dma_mr(struct ib_pd *pd, int access)
{
	struct ib_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	return mr ?: ERR_PTR(-ENOMEM);
}

static struct ib_mr *stub_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 address,
				      int access, struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static int stub_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	kfree(mr);
	return 0;
}

/* Queue pairs keep the receive buffers and return them in the error state */

static int stub_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct stub_qp *qp = to_stub_qp(ib);
	unsigned long flags;

	qp->state = IB_QPS_RESET;
	ib->qp_num = atomic_inc_return(&stub_next_qpn);
	spin_lock_irqsave(&stub_qps_lock, flags);
	list_add_tail(&qp->list, &stub_qps);
	spin_unlock_irqrestore(&stub_qps_lock, flags);
	return 0;
}

static int stub_destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	unsigned long flags;

	spin_lock_irqsave(&stub_qps_lock, flags);
	list_del(&to_stub_qp(ib)->list);
	spin_unlock_irqrestore(&stub_qps_lock, flags);
	return 0;
}

static int stub_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
			  struct ib_udata *udata)
{
	if (mask & IB_QP_STATE)
		to_stub_qp(ib)->state = attr->qp_state;
	return 0;
}

static int stub_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
			 struct ib_qp_init_attr *init)
{
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	attr->qp_state = to_stub_qp(ib)->state;
	return 0;
}

static int stub_post_send(struct ib_qp *ib, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	*bad = wr;
	return -ENOSPC;
}

static int stub_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	struct stub_qp *qp = to_stub_qp(ib);
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&stub_qps_lock, flags);
	for (; wr; wr = wr->next) {
		if (qp->receives == STUB_RECEIVES) {
			*bad = wr;
			ret = -ENOMEM;
			break;
		}
		qp->wr_id[qp->receives++] = wr->wr_id;
	}
	spin_unlock_irqrestore(&stub_qps_lock, flags);
	return ret;
}

static int stub_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			  struct uverbs_attr_bundle *bundle)
{
	cq->cqe = attr->cqe;
	return 0;
}

static int stub_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	return 0;
}

static int stub_poll_cq(struct ib_cq *cq, int entries, struct ib_wc *wc)
{
	struct stub_qp *qp;
	unsigned long flags;
	int done = 0;

	spin_lock_irqsave(&stub_qps_lock, flags);
	list_for_each_entry(qp, &stub_qps, list) {
		if (qp->ib.recv_cq != cq || qp->state != IB_QPS_ERR)
			continue;
		for (; qp->receives && done < entries; done++) {
			memset(&wc[done], 0, sizeof(wc[done]));
			wc[done].wr_id = qp->wr_id[--qp->receives];
			wc[done].status = IB_WC_WR_FLUSH_ERR;
			wc[done].qp = &qp->ib;
		}
	}
	spin_unlock_irqrestore(&stub_qps_lock, flags);
	return done;
}

static int stub_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	return 0;
}

static const struct ib_device_ops stub_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = 1,

	.query_device = stub_query_device,
	.query_port = stub_query_port,
	.get_port_immutable = stub_port_immutable,
	.get_link_layer = stub_link_layer,
	.query_pkey = stub_query_pkey,
	.get_dev_fw_str = stub_firmware,
	.alloc_ucontext = stub_alloc_ucontext,
	.dealloc_ucontext = stub_dealloc_ucontext,
	.disassociate_ucontext = stub_disassociate_ucontext,
	.alloc_pd = stub_alloc_pd,
	.dealloc_pd = stub_dealloc_pd,
	.create_ah = stub_create_ah,
	.destroy_ah = stub_destroy_ah,
	.get_dma_mr = stub_get_dma_mr,
	.reg_user_mr = stub_reg_user_mr,
	.dereg_mr = stub_dereg_mr,
	.create_qp = stub_create_qp,
	.destroy_qp = stub_destroy_qp,
	.modify_qp = stub_modify_qp,
	.query_qp = stub_query_qp,
	.post_send = stub_post_send,
	.post_recv = stub_post_recv,
	.create_cq = stub_create_cq,
	.destroy_cq = stub_destroy_cq,
	.poll_cq = stub_poll_cq,
	.req_notify_cq = stub_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_ucontext, stub_ucontext, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, stub_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_ah, stub_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, stub_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, stub_qp, ib),
};

static const struct ib_device_ops stub_infiniband_ops = {
	.query_gid = stub_query_gid,
	.get_vf_config = stub_get_vf_config,
	.set_vf_link_state = stub_set_vf_link_state,
	.get_vf_stats = stub_get_vf_stats,
	.get_vf_guid = stub_get_vf_guid,
	.set_vf_guid = stub_set_vf_guid,
};

static const struct ib_device_ops stub_roce_ops = {
	.add_gid = stub_add_gid,
	.del_gid = stub_del_gid,
};

/* Creation and removal of devices */

static struct net_device *stub_netdev_of(struct pci_dev *pdev)
{
	struct net_device *netdev, *found = NULL;

	rtnl_lock();
	for_each_netdev(&init_net, netdev) {
		if (netdev->dev.parent == &pdev->dev) {
			found = netdev;
			dev_hold(found);
			break;
		}
	}
	rtnl_unlock();
	return found;
}

/* Returns the GUIDs that a VF's PF has set for it. */
static struct stub_vf *stub_vf_of(struct pci_dev *pdev)
{
	struct pci_dev *physical = pci_physfn(pdev);
	struct stub_device *stub;

	if (!pdev->is_virtfn)
		return NULL;
	list_for_each_entry(stub, &stub_devices, list)
		if (stub->pdev == physical)
			return stub_vf(&stub->ib, pci_iov_vf_id(pdev));
	return NULL;
}

static int stub_add(struct pci_dev *pdev, bool roce, struct stub_vf *set)
{
	u64 function = (u64)pci_domain_nr(pdev->bus) << 16 | pci_dev_id(pdev);
	struct stub_device *stub = ib_alloc_device(stub_device, ib);
	int ret;

	if (!stub)
		return -ENOMEM;
	stub->pdev = pci_dev_get(pdev);
	stub->port_guid = cpu_to_be64(STUB_GUID_PREFIX | function << 8 | STUB_PORT);
	stub->ib.node_guid = cpu_to_be64(STUB_GUID_PREFIX | function << 8);
	if (set && set->port_guid)
		stub->port_guid = cpu_to_be64(set->port_guid);
	if (set && set->node_guid)
		stub->ib.node_guid = cpu_to_be64(set->node_guid);
	stub->ib.node_type = RDMA_NODE_IB_CA;
	stub->ib.phys_port_cnt = 1;
	stub->ib.num_comp_vectors = 1;
	stub->ib.dev.parent = &pdev->dev;
	strscpy(stub->ib.node_desc, "ib_stub", sizeof(stub->ib.node_desc));
	ib_set_device_ops(&stub->ib, &stub_ops);
	ib_set_device_ops(&stub->ib, roce ? &stub_roce_ops : &stub_infiniband_ops);

	if (roce) {
		stub->netdev = stub_netdev_of(pdev);
		ret = stub->netdev ? ib_device_set_netdev(&stub->ib, stub->netdev, STUB_PORT) : -ENODEV;
		if (ret)
			goto free;
	}
	/* ib_core needs a DMA mask, which a function without a driver lacks. */
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(32));
	if (ret)
		goto free;
	ret = ib_register_device(&stub->ib, "ibstub%d", &pdev->dev);
	if (ret)
		goto free;
	list_add_tail(&stub->list, &stub_devices);
	return 0;

free:
	if (stub->netdev)
		dev_put(stub->netdev);
	ib_dealloc_device(&stub->ib);
	pci_dev_put(pdev);
	return ret;
}

static void stub_remove(struct stub_device *stub)
{
	struct net_device *netdev = stub->netdev;
	struct pci_dev *pdev = stub->pdev;

	list_del(&stub->list);
	ib_unregister_device(&stub->ib);
	if (netdev)
		dev_put(netdev);
	ib_dealloc_device(&stub->ib);
	pci_dev_put(pdev);
}

static int stub_del(struct pci_dev *pdev)
{
	struct stub_device *stub;

	list_for_each_entry(stub, &stub_devices, list) {
		if (stub->pdev == pdev) {
			stub_remove(stub);
			return 0;
		}
	}
	return -ENOENT;
}

static int stub_keep(struct pci_dev *pdev, bool keeps)
{
	struct stub_device *stub;

	list_for_each_entry(stub, &stub_devices, list) {
		if (stub->pdev == pdev) {
			stub->keeps = keeps;
			return 0;
		}
	}
	return -ENOENT;
}

static int stub_control(const char *line, const struct kernel_param *param)
{
	unsigned int domain, bus, device, function;
	struct pci_dev *pdev;
	char verb[8], layer[8];
	int words, ret;

	words = sscanf(line, "%7s %x:%x:%x.%x %7s", verb, &domain, &bus, &device, &function, layer);
	if (words < 5)
		return -EINVAL;
	pdev = pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(device, function));
	if (!pdev)
		return -ENODEV;
	mutex_lock(&stub_devices_lock);
	if (words == 6 && !strcmp(verb, "add") && !strcmp(layer, "ib"))
		ret = stub_add(pdev, false, NULL);
	else if (words == 6 && !strcmp(verb, "add") && !strcmp(layer, "roce"))
		ret = stub_add(pdev, true, NULL);
	else if (words == 5 && !strcmp(verb, "del"))
		ret = stub_del(pdev);
	else if (words == 5 && (!strcmp(verb, "keep") || !strcmp(verb, "let")))
		ret = stub_keep(pdev, !strcmp(verb, "keep"));
	else
		ret = -EINVAL;
	mutex_unlock(&stub_devices_lock);
	pci_dev_put(pdev);
	return ret;
}

static const struct kernel_param_ops stub_control_ops = { .set = stub_control };
module_param_cb(control, &stub_control_ops, NULL, 0200);
MODULE_PARM_DESC(control, "add BDF ib|roce, del BDF, keep BDF, let BDF");

/* The PCI driver */

static int stub_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int ret;

	mutex_lock(&stub_devices_lock);
	ret = stub_add(pdev, false, stub_vf_of(pdev));
	mutex_unlock(&stub_devices_lock);
	return ret;
}

static void stub_unbind(struct pci_dev *pdev)
{
	mutex_lock(&stub_devices_lock);
	stub_del(pdev);
	mutex_unlock(&stub_devices_lock);
}

static struct pci_driver stub_driver = {
	.name = "ib_stub",
	.probe = stub_probe,
	.remove = stub_unbind,
};

static int __init stub_init(void)
{
	return pci_register_driver(&stub_driver);
}

static void __exit stub_exit(void)
{
	struct stub_device *stub, *next;

	pci_unregister_driver(&stub_driver);
	list_for_each_entry_safe(stub, next, &stub_devices, list)
		stub_remove(stub);
}

module_init(stub_init);
module_exit(stub_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A stub RDMA device on any PCI function; carries no traffic");
