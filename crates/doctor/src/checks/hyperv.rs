//! Hyper-V and Azure: the `VMBus` driver that DPDK needs, and driverctl, which keeps the binding over a reboot.

use crate::{Finding, Remedy, Subject, When, look};
use host::modules::{Module, module};
use host::{Fix, bind, vmbus};

const NAME: &str = "vmbus";
const DEVICES: &str = "/sys/bus/vmbus/devices";
const DRIVER: &str = "uio_hv_generic";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let (sys, finding) = (subject.sys, Finding::of(NAME));
    if !vmbus::exists(sys) {
        let sentence = "this machine does not run on Hyper-V";
        return finding.good(sentence).read(DEVICES, "absent");
    }
    let devices = vmbus::network_channels(sys).into_iter();
    let driver = |driver: Option<String>| driver.unwrap_or_else(|| "no driver".to_owned());
    let names: Vec<String> = devices
        .map(|device| format!("{} ({})", device.id, driver(device.driver)))
        .collect();
    let finding = finding.read(DEVICES, look::few(&names));
    if names.is_empty() {
        return finding.cannot_tell("no network device is on the VMBus");
    }
    match module(sys, DRIVER) {
        Module::Absent => {
            let fix = Fix::kernel_with(format!("{DRIVER}, such as linux-image-amd64 of Debian"));
            finding
                .bad(format!("this kernel lacks {DRIVER}, which vmbus: ports need"))
                .costs("vmbus: ports do not start")
                .remedy(Remedy::by_hand(When::Boot, fix))
        }
        Module::Unknown => finding.cannot_tell(format!(
            "whether the kernel has {DRIVER} is unknown: its release cannot be read"
        )),
        _ if bind::has_driverctl(sys) => finding.good(format!(
            "the kernel has {DRIVER}, and driverctl keeps what is bound to it"
        )),
        _ => {
            let fix = Fix::one("apt-get install -y driverctl")
                .persistent()
                .undone_by(["apt-get remove -y driverctl"]);
            finding
                .warning(format!("the kernel has {DRIVER}, but driverctl is not installed"))
                .costs("a binding to it is lost with a reboot")
                .remedy(Remedy::by_hand(When::Now, fix))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    const CLASS: &str = "/sys/bus/vmbus/devices/000d3a00-1111-2222-3333-000d3a000001/class_id";

    #[test]
    fn each_piece_is_asked_for() {
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::Good);
        let machine = Machine::with(&[(CLASS, "{f8615163-df3e-46c5-913f-f2d2f965ed0e}")]);
        assert_eq!(machine.verdict(check), Verdict::CannotTell);
        machine.write("/proc/sys/kernel/osrelease", "6.1.0");
        assert_eq!(machine.verdict(check), Verdict::Bad);
        machine.write(
            "/lib/modules/6.1.0/modules.dep",
            "kernel/drivers/uio/uio_hv_generic.ko:\n",
        );
        assert_eq!(machine.verdict(check), Verdict::Warning);
        machine.write("/usr/sbin/driverctl", "");
        assert_eq!(machine.verdict(check), Verdict::Good);
    }
}
