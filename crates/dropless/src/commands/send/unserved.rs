//! Transmit queues that the other end of a port does not have: `vhost` and `virtio-user` say nothing of it, and take the packets.

use dataplane::receive::LaneResult;
use host::Medium;
use measure::verdict::Unserved;

use super::active::ActiveSend;
use super::ledger::Results;

/// Fewer packets of a queue may all have been lost by chance.
const PACKETS_MIN: u64 = 16;

/// Of each port whose other end is a program, the queues that seem not to be served.
pub fn unserved(job: &ActiveSend, results: &Results<'_>) -> Vec<Unserved> {
    let came = |lane: usize| -> u64 {
        let lanes = results
            .receive
            .iter()
            .filter_map(|receive| receive.lanes.get(lane));
        lanes.map(LaneResult::probes).sum()
    };
    let of_port = |port: usize| -> Vec<(u64, u64)> {
        let sides = job.wiring.send.iter().filter(|side| side.place.port == port);
        let queues = sides.filter_map(|side| side.totals.get()).map(|send| {
            let lanes = usize::from(send.lane_base)..;
            let came = lanes.zip(&send.accepted).map(|(lane, _)| came(lane));
            (send.accepted.iter().sum(), came.sum())
        });
        queues.collect()
    };
    let ports = job.plan.machine.ports.iter().enumerate();
    let peers = ports.filter(|(_, port)| port.kind.traits().medium == Medium::Peer);
    peers
        .filter_map(|(index, port)| among(&of_port(index), &port.to_string()))
        .collect()
}

/// Those among the queues of `port`, each with what it sent and what of that came.
fn among(queues: &[(u64, u64)], port: &str) -> Option<Unserved> {
    let lost = || {
        let silent = queues
            .iter()
            .filter(|(sent, came)| *sent >= PACKETS_MIN && *came == 0);
        silent.map(|(sent, _)| *sent)
    };
    let others_came = queues.iter().any(|(_, came)| *came > 0);
    (others_came && lost().count() > 0).then(|| Unserved {
        port: port.to_owned(),
        queues: lost().count(),
        packets: lost().sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_unserved_where_only_others_came() {
        let among =
            |queues: &[(u64, u64)]| among(queues, "vhost:/v").map(|found| (found.queues, found.packets));
        assert_eq!(among(&[(500, 500), (500, 0), (400, 0)]), Some((2, 900)));
        for served in [
            &[(500, 1), (500, 500)][..],
            &[(500, 0), (500, 0)],
            &[(500, 500), (PACKETS_MIN - 1, 0)],
            &[(500, 500)],
            &[],
        ] {
            assert_eq!(among(served), None, "{served:?}");
        }
    }
}
