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
        let link = packet.interface.link;
        if let Some((_, filter)) = self.filters.iter().find(|(of, _)| *of == link) {
            return Ok(filter.passes(packet.data, packet.original_len));
        }
        let filter = compile(expression, link)?;
        let passes = filter.passes(packet.data, packet.original_len);
        self.filters.push((link, filter));
        Ok(passes)
    }
}

fn compile(expression: &str, link: LinkType) -> Result<Filter> {
    let of_link = match link {
        LinkType::Ethernet => String::new(),
        other => format!(" (for packets of the kind {other:?})"),
    };
    Filter::compile_for(expression, link).map_err(|error: FilterError| anyhow!("--filter {error}{of_link}"))
}
