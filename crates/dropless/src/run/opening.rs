//! Opens ports: from a checked URI and its device to running queues.

use anyhow::{Context, Result, ensure};
use dpdk::{Port, PortConfig, Promiscuous};
use host::interface::Sort;
use host::{PortKind, PortUri, Sys};

use super::Needs;
use super::eal::{Device, packet_ring};
use super::kernel_counts::KernelCounts;
use super::kernel_port::{KernelPort, SocketConfig};
use super::open::{Carrier, Dpdk, OpenPort, Rx, Tx};
use super::peer;
use super::pools::Pools;
use super::preflight::packet_cuts_at;
use super::signals::Interrupt;

/// What the opening of every port of a run has in common.
pub struct Opening<'o, 'e> {
    pub pools: Option<&'e Pools<'e>>,
    pub config: &'o PortConfig,
    pub needs: &'o Needs,
    pub interrupt: &'o Interrupt,
    /// The room for a frame in each buffer.
    pub room: usize,
}

impl<'e> Opening<'_, 'e> {
    /// Configures and starts the port behind `device`, the one with this index.
    pub fn open(&self, index: usize, uri: &PortUri, device: &Device) -> Result<OpenPort<'e>> {
        let Some(pools) = self.pools.filter(|_| *device != Device::Sockets) else {
            return open_sockets(uri, &self.needs.sockets);
        };
        let (dpdk, config) = (pools.of_port(index), self.config);
        // A port's own number of queues goes before the run's.
        let own = uri.queues.map(std::num::NonZeroU16::get);
        let mut config = PortConfig {
            rx_queues: own.unwrap_or(config.rx_queues),
            tx_queues: own.unwrap_or(config.tx_queues),
            // Sockets are given their part by the kernel: there is nothing that the driver should spread.
            rss: config.rss && !uri.kind.traits().sends_through_receivers,
            ..config.clone()
        };
        if uri.kind.traits().sends_through_receivers {
            config = both_ways(&config, config.rx_queues.max(config.tx_queues));
        }
        let promiscuous = uri.kind.interface().filter(|_| config.promiscuous);
        // The driver would set a flag that others clear, and clear one that others set.
        config.promiscuous &= promiscuous.is_none();
        let promiscuous = promiscuous.map(|interface| {
            let failed = || format!("cannot have {interface} receive frames for any address");
            Promiscuous::on(interface).with_context(failed)
        });
        let promiscuous = promiscuous.transpose()?;
        let mut open = self.start_all(dpdk, uri, device, &config)?;
        open.promiscuous = promiscuous;
        Ok(open)
    }

    /// Starts all that the port `uri` is made of.
    fn start_all(
        &self,
        dpdk: Dpdk<'e, 'e>,
        uri: &PortUri,
        device: &Device,
        config: &PortConfig,
    ) -> Result<OpenPort<'e>> {
        let start = |name: &str, config: &PortConfig| self.start(dpdk, uri, name, config);
        match device {
            Device::Named(name) => start(name, config),
            Device::Queues(names) => {
                let single = both_ways(config, 1);
                let mut queues = names.iter().map(|name| start(name, &single));
                let mut open = queues.next().context("a port without queues")??;
                for queue in queues {
                    open.join(queue?);
                }
                // An AF_XDP socket that works in one direction only is half as fast again as one that works in both: the
                // sender and the receiver of a used-both-ways socket write to the same lines of the kernel's struct xdp_sock.
                open.tx.rotate_left(1);
                Ok(open)
            }
            Device::Ring { name, size, direct } => {
                let (slots, queues) = (*size as usize, config.rx_queues.max(config.tx_queues));
                let config = both_ways(config, queues);
                if *direct {
                    return start(&dpdk.eal.ring_loop(name, slots, queues)?, &config);
                }
                let (near, far) = dpdk.eal.ring_pair(name, slots, queues)?;
                let mut near = start(&near, &config)?;
                near.far = Some(Box::new(start(&far, &config)?));
                Ok(near)
            }
            Device::Sockets => open_sockets(uri, &self.needs.sockets),
        }
    }

    /// Starts one device as the port `uri`.
    fn start(
        &self,
        Dpdk { eal, pool }: Dpdk<'e, 'e>,
        uri: &PortUri,
        name: &str,
        config: &PortConfig,
    ) -> Result<OpenPort<'e>> {
        let sockets = uri
            .kind
            .interface()
            .filter(|_| uri.kind.traits().is_socket_per_queue);
        let opening = || match (sockets, config.rx_queues.max(config.tx_queues)) {
            (Some(interface), queues @ 2..) => format!(
                "cannot open port {uri} with {queues} queues (the interface needs as many queues in each direction, see ethtool -l {interface}; --verbose shows what the kernel says)"
            ),
            (Some(interface), _) if is_hardware(interface) => format!(
                "cannot open port {uri} (the driver of {interface} refuses AF_XDP; packet:{interface} asks nothing of it; --verbose shows what the kernel says)"
            ),
            (Some(_), _) => format!(
                "cannot open port {uri} (the other end of a veth must not have more transmit queues than this one has receive queues; --verbose shows what the kernel says)"
            ),
            (None, _) => format!("cannot open port {uri} (--verbose shows what DPDK says)"),
        };
        let free = pool.available();
        let device = Port::by_name(eal, name).with_context(opening)?;
        let (mut port, rx, tx) = device.configure(config, pool).with_context(opening)?;
        let carries = port.granted().max_frame_size;
        ensure!(
            config.max_frame_size <= carries,
            "port {uri} carries frames of up to {carries} bytes; send none that are longer"
        );
        peer::start(&mut port, uri, self.needs.patience, self.interrupt).with_context(opening)?;
        let kept = if port.keeps_buffers() {
            free.saturating_sub(pool.available()) as u64
        } else {
            0
        };
        let mac = port.mac().unwrap_or([2, 0, 0, 0, 0, 0]);
        let kernel = KernelCounts::from_now(uri, packet_ring(config.rx_descriptors, self.room))?;
        let rx = rx.into_iter().map(Rx::Device).collect();
        let tx = tx.into_iter().map(Tx::Device).collect();
        let mut open = OpenPort::of(uri, Carrier::Devices(vec![port]), rx, tx);
        (open.mac, open.kept, open.kernel) = (mac, kept, kernel);
        if matches!(uri.kind, PortKind::Tap { .. }) {
            // Its driver takes none that is longer, nor any behind it (drivers/net/tap/rte_eth_tap.c, `pmd_tx_burst`).
            open.longest = Some(carries - wire::FCS_LEN);
        }
        if let PortKind::Packet { interface, .. } = &uri.kind {
            open.cut_at = Some(packet_cuts_at(self.room));
            let mtu = host::interface::mtu(&Sys::at("/"), interface);
            // The kernel drops them behind the driver's back (net/packet/af_packet.c, `tpacket_snd`).
            open.longest = mtu.map(|mtu| mtu as usize + 14);
            let mtu = mtu.unwrap_or(0);
            let needed = if self.needs.takes_all {
                mtu
            } else {
                mtu.min(self.needs.largest_frame.saturating_sub(18) as u32)
            };
            open.below = open.below.map(|below| below.carrying(needed));
        }
        Ok(open)
    }
}

fn open_sockets<'e>(uri: &PortUri, config: &SocketConfig) -> Result<OpenPort<'e>> {
    let (port, queues) = KernelPort::open(uri, config)?;
    let (rx, tx) = queues
        .into_iter()
        .map(|(rx, tx)| (Rx::Socket(Box::new(rx)), Tx::Socket(Box::new(tx))))
        .unzip();
    Ok(OpenPort::of(uri, Carrier::Sockets(port), rx, tx))
}

fn both_ways(config: &PortConfig, queues: u16) -> PortConfig {
    PortConfig {
        rx_queues: queues,
        tx_queues: queues,
        ..config.clone()
    }
}

fn is_hardware(interface: &str) -> bool {
    host::interface::interface(&Sys::at("/"), interface).is_some_and(|found| found.sort == Sort::Device)
}
