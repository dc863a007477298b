/* Ports on the control path. */
#include <stdio.h>
#include <string.h>

#include <rte_eth_vhost.h>
#include <rte_ethdev.h>
#include <rte_vhost.h>

#include "shim.h"

static_assert(DL_NO_PORT >= RTE_MAX_ETHPORTS, "no port");

uint16_t dl_port_next(uint16_t from)
{
	uint64_t port = rte_eth_find_next(from);
	return port >= RTE_MAX_ETHPORTS ? DL_NO_PORT : (uint16_t)port;
}

int dl_port_name(uint16_t port, char *room, size_t size)
{
	char name[RTE_ETH_NAME_MAX_LEN + 1] = "";
	int result = rte_eth_dev_get_name_by_port(port, name);

	if (result == 0)
		snprintf(room, size, "%s", name);
	return result;
}

int dl_port_by_name(const char *name)
{
	uint16_t port;
	int result = rte_eth_dev_get_port_by_name(name, &port);
	return result < 0 ? result : port;
}

/* Only UDP over IP matters here; the plain IP hash is the fallback of devices that know no ports. */
static const uint64_t rss_wanted = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP;

/* Some drivers (af_packet) say the longest frame, and no MTU. */
static uint16_t max_mtu(const struct rte_eth_dev_info *device)
{
	const uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;

	if (device->max_mtu != UINT16_MAX || device->max_rx_pktlen <= overhead)
		return device->max_mtu;
	return RTE_MIN(device->max_rx_pktlen - overhead, (uint32_t)UINT16_MAX);
}

int dl_port_info(uint16_t port, struct dl_port_info *info)
{
	struct rte_eth_dev_info device;
	int result = rte_eth_dev_info_get(port, &device);

	if (result != 0)
		return result;
	*info = (struct dl_port_info){
		.driver = device.driver_name,
		.socket = rte_eth_dev_socket_id(port),
		.max_rx_queues = device.max_rx_queues,
		.max_tx_queues = device.max_tx_queues,
		.min_mtu = device.min_mtu,
		.max_mtu = max_mtu(&device),
		.default_rx_descriptors = device.default_rxportconf.ring_size,
		.default_tx_descriptors = device.default_txportconf.ring_size,
		.rss_types = device.flow_type_rss_offloads & rss_wanted,
		.tx_udp_checksum = !!(device.tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM),
		.tx_ipv4_checksum = !!(device.tx_offload_capa & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM),
		.rx_scatter = !!(device.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER),
		.rx_timestamp = !!(device.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP),
		.tx_segments = !!(device.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS),
	};
	return 0;
}

/* The offloads of `setup` that the device has. */
static void offloads(const struct dl_port_setup *setup, const struct rte_eth_dev_info *device,
		     struct rte_eth_conf *conf)
{
	if (setup->tx_checksum)
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	if (setup->segments) {
		conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	}
	if (setup->rx_timestamp)
		conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_TIMESTAMP;
	conf->rxmode.offloads &= device->rx_offload_capa;
	conf->txmode.offloads &= device->tx_offload_capa;
}

int dl_port_configure(uint16_t port, const struct dl_port_setup *setup)
{
	struct rte_eth_dev_info device;
	struct rte_eth_conf conf = { 0 };
	int result = rte_eth_dev_info_get(port, &device);

	if (result != 0)
		return result;
	conf.rxmode.mtu = setup->mtu;
	/* Without it virtio-user looks at its socket in whichever thread asks for the link, beside the interrupt
	 * thread, and leaves a callback on a closed socket behind: EAL aborts the process over that (22.11). */
	conf.intr_conf.lsc = strcmp(device.driver_name, "net_virtio_user") == 0 &&
			     (*device.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0;
	offloads(setup, &device, &conf);
	if (setup->rss_types != 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = setup->rss_types & device.flow_type_rss_offloads;
	}
	return rte_eth_dev_configure(port, setup->rx_queues, setup->tx_queues, &conf);
}

int dl_port_mtu(uint16_t port)
{
	uint16_t mtu;
	int result = rte_eth_dev_get_mtu(port, &mtu);
	return result < 0 ? result : mtu;
}

int dl_port_adjust_descriptors(uint16_t port, uint16_t *rx, uint16_t *tx)
{
	return rte_eth_dev_adjust_nb_rx_tx_desc(port, rx, tx);
}

/* Queues inherit the port's offloads; a NULL configuration means the driver's own thresholds. */
int dl_rx_queue_setup(uint16_t port, uint16_t queue, uint16_t descriptors, int socket, struct rte_mempool *pool)
{
	return rte_eth_rx_queue_setup(port, queue, descriptors, (unsigned)socket, NULL, pool);
}

int dl_tx_queue_setup(uint16_t port, uint16_t queue, uint16_t descriptors, int socket)
{
	return rte_eth_tx_queue_setup(port, queue, descriptors, (unsigned)socket, NULL);
}

int dl_port_promiscuous(uint16_t port, int on)
{
	return on ? rte_eth_promiscuous_enable(port) : rte_eth_promiscuous_disable(port);
}

int dl_port_start(uint16_t port)
{
	return rte_eth_dev_start(port);
}

int dl_port_stop(uint16_t port)
{
	return rte_eth_dev_stop(port);
}

int dl_port_close(uint16_t port)
{
	return rte_eth_dev_close(port);
}

int dl_port_mac(uint16_t port, uint8_t mac[6])
{
	struct rte_ether_addr address;
	int result = rte_eth_macaddr_get(port, &address);

	if (result == 0)
		memcpy(mac, address.addr_bytes, 6);
	return result;
}

int dl_port_set_mac(uint16_t port, const uint8_t mac[6])
{
	struct rte_ether_addr address;

	memcpy(address.addr_bytes, mac, 6);
	return rte_eth_dev_default_mac_addr_set(port, &address);
}

int dl_port_link(uint16_t port, int *up, uint32_t *speed_mbps)
{
	struct rte_eth_link link;
	int result = rte_eth_link_get_nowait(port, &link);

	if (result == 0) {
		*up = link.link_status == RTE_ETH_LINK_UP;
		*speed_mbps = link.link_speed;
	}
	return result;
}

int dl_port_guest_posted(uint16_t port)
{
	/* Guest's receive queue of the first pair (virtio 1.2, 5.1.2). */
	const uint16_t guest_rx = 0;
	int vid = rte_eth_vhost_get_vid_from_port_id(port);
	uint64_t features;

	if (vid < 0)
		return 0;
	/* What is available in a packed ring stands in no index. */
	if (rte_vhost_get_negotiated_features(vid, &features) != 0 || (features & (1ULL << 34)) != 0)
		return 1;
	return rte_vhost_avail_entries(vid, guest_rx) > 0;
}

int dl_port_stats(uint16_t port, struct dl_port_stats *stats)
{
	struct rte_eth_stats counted;
	int result = rte_eth_stats_get(port, &counted);

	if (result == 0)
		*stats = (struct dl_port_stats){
			.ipackets = counted.ipackets,
			.opackets = counted.opackets,
			.ibytes = counted.ibytes,
			.obytes = counted.obytes,
			.imissed = counted.imissed,
			.ierrors = counted.ierrors,
			.oerrors = counted.oerrors,
			.rx_nombuf = counted.rx_nombuf,
		};
	return result;
}
