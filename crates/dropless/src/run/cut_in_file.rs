//! Packets that were cut when the file was recorded that a `pcap:` port reads. DPDK's driver (`eth_pcap_rx` of `net/pcap`) hands
//! over what was kept as if it were the whole frame.

use capture::input::Reader;
use host::{PortKind, PortUri};
use measure::Note;

/// So many packets are looked at: whoever cuts usually cuts all long ones, and a file may be of any length.
const LOOK_AT: usize = 1000;

/// Says so, where one of the first packets was cut.
pub fn note(port: &PortUri) -> Option<Note> {
    let PortKind::Pcap {
        input: Some(path), ..
    } = &port.kind
    else {
        return None;
    };
    // What is read of a pipe would be missing.
    if !path.metadata().is_ok_and(|about| about.is_file()) {
        return None;
    }
    let mut reader = Reader::open(path).ok()?;
    for _ in 0..LOOK_AT {
        // What is wrong with the file is its driver's to say.
        let packet = reader.next_packet().ok()??;
        let kept = packet.data.len();
        if (kept as u64) < u64::from(packet.original_len) {
            let text = format!(
                "port {port}: packets were cut when they were recorded ({kept} of {} bytes are left of one), and DPDK's driver does not tell: what is left counts as the whole frame; `dropless read` and `replay` know both lengths",
                packet.original_len
            );
            return Some(Note::new("pcap-cut", text));
        }
    }
    None
}
