//! PCI Express: whether the NIC's link runs as fast and as wide as it can.

use crate::{Finding, Remedy, Subject, When, look};
use itertools::Itertools as _;

const NAME: &str = "pcie";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let functions = look::functions(subject);
    if functions.is_empty() {
        let none = Finding::of(NAME).good("no NIC on PCI is planned or present");
        return none.read("/sys/bus/pci/devices", "none").into();
    }
    let of_device = |device: &host::PciDevice| of_device(subject, &device.address.to_string());
    functions.iter().map(of_device).collect()
}

fn of_device(subject: &Subject<'_>, address: &str) -> Finding {
    let folder = format!("/sys/bus/pci/devices/{address}");
    let value = |name: &str| subject.sys.text(format!("{folder}/{name}"));
    let pairs = ["speed", "width"].map(|what| {
        let current = value(&format!("current_link_{what}"))?;
        let most = value(&format!("max_link_{what}"))?;
        // "8.0 GT/s PCIe", "Unknown", "16", and 0 where nobody knows.
        let number = |text: &str| text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
        let less = number(&current)? < number(&most)?;
        let known = number(&most)? > 0.0;
        known.then_some((what, current, most, less))
    });
    let known: Vec<_> = pairs.into_iter().flatten().collect();
    let finding = Finding::of(NAME).read_all(
        known
            .iter()
            .map(|(what, current, ..)| (format!("{folder}/current_link_{what}"), current)),
    );
    if known.is_empty() {
        return finding.cannot_tell(format!(
            "{address} does not report its link's speed (a virtual device?)"
        ));
    }
    let slower: Vec<String> = known
        .iter()
        .filter(|(.., less)| *less)
        .map(|(what, current, most, _)| format!("{what} {current} of {most}"))
        .collect();
    if slower.is_empty() {
        let mut all = known
            .iter()
            .map(|(what, current, ..)| format!("{what} {current}"));
        return finding.good(format!("{address} has its full link: {}", all.join(", ")));
    }
    let advice = "another slot, or its lanes and speed in the firmware's settings";
    finding
        .warning(format!(
            "{address} has less than its full link: {}",
            slower.join(", ")
        ))
        .costs("the bus becomes the limit: 8 lanes of 8 GT/s carry about 50 Gbit/s of packets")
        .remedy(Remedy::advice(When::Hardware, advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    const NIC: &str = "/sys/bus/pci/devices/0000:3b:00.0";

    fn machine(speed: &str, width: &str) -> Machine {
        Machine::with(&[
            (&format!("{NIC}/class"), "0x020000"),
            (&format!("{NIC}/current_link_speed"), speed),
            (&format!("{NIC}/max_link_speed"), "8.0 GT/s PCIe"),
            (&format!("{NIC}/current_link_width"), width),
            (&format!("{NIC}/max_link_width"), "8"),
        ])
    }

    #[test]
    fn a_narrow_slot_is_found() {
        assert_eq!(machine("8.0 GT/s PCIe", "8").verdict(check), Verdict::Good);
        let finding = machine("8.0 GT/s PCIe", "4").finding(check);
        assert_eq!(
            (finding.verdict, finding.remedies[0].when),
            (Verdict::Warning, When::Hardware)
        );
        assert!(finding.says.contains("width 4 of 8"), "{}", finding.says);
        assert_eq!(machine("2.5 GT/s PCIe", "8").verdict(check), Verdict::Warning);
    }

    #[test]
    fn virtual_devices_do_not_tell() {
        let machine = Machine::with(&[(&format!("{NIC}/class"), "0x020000")]);
        assert_eq!(machine.verdict(check), Verdict::CannotTell);
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::Good);
    }
}
