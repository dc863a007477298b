//! Asking over a port's own queues before the run: who has an address, and what the far side has counted so far.

use anyhow::{Result, bail};
use dataplane::dpdk_io::{DpdkReceive, DpdkTransmit};
use dataplane::kernel_io::KernelReceive;
use dataplane::resolve::{Question, ask};

use crate::run::clock::now;
use crate::run::open::{Dpdk, OpenPort, Rx, Tx};
use crate::run::signals::Interrupt;

/// So many ticks of the clock that questions wait by for each of these milliseconds.
pub fn waits<const N: usize>(milliseconds: [u64; N]) -> [u64; N] {
    let hz = dpdk::calibrate(std::time::Duration::from_millis(1)).hz;
    milliseconds.map(|ms| (hz * ms as f64 / 1e3) as u64)
}

/// Asks over the queues of `open`; nothing where nobody answers, or somebody interrupts.
pub fn over<'e, V>(
    open: &mut OpenPort<'e>,
    dpdk: Option<Dpdk<'_, 'e>>,
    question: &Question<'_>,
    answer: &dyn Fn(&[u8]) -> Option<V>,
    interrupt: &Interrupt,
) -> Result<Option<V>> {
    let stop = || interrupt.is_set();
    // The first queue is the one that every other end has.
    let first = (!open.tx.is_empty()).then(|| open.tx.remove(0));
    let (value, tx) = match (first, dpdk) {
        (Some(Tx::Device(tx)), Some(dpdk)) => {
            let rx = open.rx.drain(..).filter_map(|rx| match rx {
                Rx::Device(rx) => Some(DpdkReceive::new(dpdk.eal, rx, false)),
                Rx::Socket(_) => None,
            });
            let mut rx: Vec<_> = rx.collect();
            let (mut tx, mut buffers) = (DpdkTransmit::new(dpdk.eal, tx, false), dpdk.buffers(false));
            let value = ask(&mut rx, (&mut tx, &mut buffers), question, answer, now, &stop);
            let rx = rx.into_iter().map(|rx| Rx::Device(rx.into_queue()));
            open.rx.extend(rx);
            (value, Tx::Device(tx.into_queue()))
        }
        (Some(Tx::Socket(mut tx)), _) => {
            let rx = open.rx.drain(..).filter_map(|rx| match rx {
                Rx::Socket(rx) => Some(*rx),
                Rx::Device(_) => None,
            });
            let (mut rx, mut buffers) = (rx.collect::<Vec<_>>(), tx.buffers());
            let value = ask(&mut rx, (&mut *tx, &mut buffers), question, answer, now, &stop);
            rx.iter_mut().for_each(KernelReceive::rest);
            open.rx.extend(rx.into_iter().map(|rx| Rx::Socket(Box::new(rx))));
            (value, Tx::Socket(tx))
        }
        _ => bail!("port {} has no queue to ask on; give --to-mac", open.uri),
    };
    open.tx.insert(0, tx);
    Ok(value)
}
