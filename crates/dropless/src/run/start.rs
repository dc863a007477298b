//! The start of a run: DPDK and the ports.

use anyhow::{Result, bail};
use dpdk::{Eal, PortConfig};

use super::Needs;
use super::eal::{self, Device, EalPlan, Memory};
use super::open::OpenPort;
use super::opening::Opening;
use super::peer;
use super::pools::Pools;
use super::preflight::Preflight;
use super::signals::Interrupt;
use crate::plan::MachinePlan;

/// Starts DPDK, where a port needs it.
pub fn eal(
    plan: &MachinePlan,
    preflight: &Preflight,
    needs: &Needs,
    verbose: bool,
    interrupt: &Interrupt,
) -> Result<(Option<Eal>, Vec<Device>)> {
    let queues = needs.rx_queues.max(needs.tx_queues);
    let EalPlan {
        arguments,
        devices,
        drivers,
    } = eal::plan(
        &preflight.ports,
        (queues, plan.descriptors, preflight.room),
        preflight.memory,
        plan.eal.as_deref(),
        verbose,
    )?;
    if devices.iter().all(|device| *device == Device::Sockets) {
        return Ok((None, devices));
    }
    let eal = peer::start_with(&preflight.ports, needs.patience, interrupt, || {
        Eal::init_with(&arguments, drivers.as_deref(), verbose)
    })?;
    match (eal, &plan.eal) {
        (Ok(eal), _) => {
            super::sweep::sweep(&eal.runtime_directory());
            doctor::noise::trace::sweep_killed();
            if preflight.memory == Memory::Shared {
                eal.serve_dumps()?;
            }
            Ok((Some(eal), devices))
        }
        (Err(dpdk::EalError::Init { log, .. }), Some(extra)) => {
            let words = log.first().map_or("no reason given", |line| line.trim());
            bail!(
                "DPDK does not start with --eal '{extra}': {words}; fix --eal (`man dpdk-testpmd` lists what EAL takes), or see more with --verbose"
            )
        }
        (Err(error), _) => Err(error.into()),
    }
}

pub fn ports<'e>(
    pools: Option<&'e Pools<'e>>,
    preflight: &Preflight,
    devices: &[Device],
    needs: &Needs,
    interrupt: &Interrupt,
) -> Result<Vec<OpenPort<'e>>> {
    let config = PortConfig {
        rx_queues: needs.rx_queues,
        tx_queues: needs.tx_queues,
        rx_descriptors: preflight.descriptors,
        tx_descriptors: preflight.descriptors,
        max_frame_size: needs.largest_frame,
        tx_checksum_offload: needs.tx_checksum_offload,
        ..PortConfig::default()
    };
    let opening = Opening {
        pools,
        config: &config,
        needs,
        interrupt,
        room: preflight.room,
    };
    let each = preflight.ports.iter().zip(devices).enumerate();
    each.map(|(index, (uri, device))| opening.open(index, uri, device))
        .collect()
}
