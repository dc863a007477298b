//! Rules by VLAN where XDP does not see the tags: they would meet nothing, or everything, and nobody would say so.

use anyhow::{Result, bail};
use host::offloads::{Tags, tags};
use host::{PortKind, PortUri, Sys};
use measure::Note;
use rules::RuleSet;

/// The interfaces that rules are in force on through XDP.
#[derive(Clone, Debug, Default)]
pub struct ThroughXdp(Vec<String>);

impl ThroughXdp {
    /// This one.
    pub fn interface(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }

    /// Those of ports.
    pub fn of_ports(ports: &[PortUri]) -> Self {
        let names = ports.iter().filter_map(|port| match &port.kind {
            PortKind::Xdp { interface, .. } => Some(interface.clone()),
            _ => None,
        });
        Self(names.collect())
    }

    /// Refuses rules that ask for tags which an interface takes off.
    pub fn shows_tags_to(&self, set: &RuleSet) -> Result<()> {
        let Some(rule) = set.rules.iter().find(|rule| rule.when.vlan.is_some()) else {
            return Ok(());
        };
        let sys = Sys::live();
        for name in &self.0 {
            let interface = host::interface::interface(&sys, name);
            if let Some(Tags::TakenOff(fix)) = interface.map(|interface| tags(&sys, &interface)) {
                bail!(
                    "`{}`: {name} takes VLAN tags off what it receives, and XDP does not get them: no packet would have one; fix: {fix}",
                    rule.text
                );
            }
        }
        Ok(())
    }
}

/// What rules on this interface do not see of packets.
pub fn notes(interface: &host::interface::Interface, mode: &str) -> Vec<Note> {
    let sys = Sys::live();
    let joined = (mode != xdp::Mode::Native.name()).then(|| host::offloads::joined_warning(&sys, interface));
    let all = [host::offloads::tags_warning(&sys, interface), joined.flatten()];
    all.iter()
        .flatten()
        .map(|warning| Note::new(warning.code, warning.to_string()))
        .collect()
}
