//! Which packets are wanted: all, or those that a filter of libpcap lets through.

use anyhow::{Result, anyhow};
use capture::filter::{Filter, FilterError};
use capture::input::{LinkType, Packet};

/// What is wanted, for each kind of link that came.
pub struct Chosen {
    expression: Option<String>,
    filters: Vec<(LinkType, Filter)>,
}

impl Chosen {
    /// What passes `expression`, or all.
    pub fn new(expression: Option<&str>) -> Result<Self> {
        let mut chosen = Self {
            expression: expression.map(str::to_owned),
            filters: Vec::new(),
        };
        // What is no filter at all is told before anything is read.
        if let Some(text) = expression {
            let filter = compile(text, LinkType::Ethernet)?;
            chosen.filters.push((LinkType::Ethernet, filter));
        }
        Ok(chosen)
    }

    /// Whether a packet is wanted.
    #[inline]
    pub fn has(&mut self, packet: &Packet<'_>) -> Result<bool> {
        let Some(expression) = &self.expression else {
            return Ok(true);
        };
        let link = link(packet);
        if let Some((_, filter)) = self.filters.iter().find(|(of, _)| *of == link) {
            return Ok(filter.passes(packet.data, packet.original_len));
        }
        let filter = compile(expression, link)?;
        let passes = filter.passes(packet.data, packet.original_len);
        self.filters.push((link, filter));
        Ok(passes)
    }
}

/// What a filter is compiled for. The family before IP of a file of the other byte order stands as on an OpenBSD loopback, and
/// libpcap would compare it with that of this machine.
fn link(packet: &Packet<'_>) -> LinkType {
    match (packet.interface.link, packet.data) {
        // No family is above 255.
        (LinkType::Null, [0, 0, ..]) if cfg!(target_endian = "little") => LinkType::Loopback,
        (link, _) => link,
    }
}

fn compile(expression: &str, link: LinkType) -> Result<Filter> {
    let of_link = match link {
        LinkType::Ethernet => String::new(),
        other => format!(" (for packets of the kind {other:?})"),
    };
    Filter::compile_for(expression, link).map_err(|error: FilterError| anyhow!("--filter {error}{of_link}"))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use capture::input::Reader;

    use super::*;

    /// A file of link type NULL with one UDP datagram, as a machine of either byte order writes it.
    fn file(word: fn(u32) -> [u8; 4]) -> Vec<u8> {
        let version = if word(1)[0] == 1 {
            [2, 0, 4, 0]
        } else {
            [0, 2, 0, 4]
        };
        let mut ip = [0; 28];
        (ip[0], ip[3], ip[9]) = (0x45, 28, 17);
        let head = [0xA1B2_C3D4, 0, 0, 262_144, 0].map(word);
        let record = [0, 0, 32, 32, 2].map(word);
        [
            &head[0],
            &version,
            head[1..].as_flattened(),
            record.as_flattened(),
            &ip,
        ]
        .concat()
    }

    #[test]
    fn packets_of_a_loopback_of_either_byte_order_are_looked_into() {
        for word in [u32::to_le_bytes, u32::to_be_bytes] {
            let mut reader = Reader::new("file".into(), Cursor::new(file(word))).unwrap();
            let packet = reader.next_packet().unwrap().unwrap();
            let has = |text| Chosen::new(Some(text)).unwrap().has(&packet).unwrap();
            assert!(has("udp") && !has("tcp"), "{packet:?}");
        }
    }
}
