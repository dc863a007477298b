//! Whether the running kernel has a module, loaded, loadable or built in.

use crate::Sys;

/// Where a kernel module is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Module {
    /// Loaded or built in.
    Present,
    /// `modprobe` finds it.
    Loadable,
    /// The kernel does not have it.
    Absent,
    /// There is no list to tell from.
    Unknown,
}

/// Looks for `name` (with dashes or underscores).
pub fn module(sys: &Sys, name: &str) -> Module {
    let underscored = name.replace('-', "_");
    let dashed = name.replace('_', "-");
    let driver = |bus: &str, name: &str| sys.exists(format!("/sys/bus/{bus}/drivers/{name}"));
    let bound = ["pci", "vmbus"]
        .iter()
        .any(|bus| driver(bus, &underscored) || driver(bus, &dashed));
    if bound || sys.exists(format!("/sys/module/{underscored}")) {
        return Module::Present;
    }
    let Some(release) = sys.kernel_release() else {
        return Module::Unknown;
    };
    let directories = ["/lib/modules", "/usr/lib/modules"].map(|base| format!("{base}/{release}"));
    let Some(directory) = directories.iter().find(|directory| sys.exists(directory)) else {
        return Module::Absent;
    };
    // kernel/drivers/net/tun.ko.xz: what it needs
    let name_in = |line: &str| {
        let file = line.split(':').next()?.rsplit('/').next()?;
        Some(file.split('.').next()?.replace('-', "_"))
    };
    let is_listed = |file: &str| {
        let list = sys.text(format!("{directory}/{file}")).unwrap_or_default();
        list.lines()
            .any(|line| name_in(line).as_ref() == Some(&underscored))
    };
    if is_listed("modules.builtin") {
        Module::Present
    } else if is_listed("modules.dep") {
        Module::Loadable
    } else {
        Module::Absent
    }
}

/// Whether the module is there, loaded or built in.
pub fn is_loaded(sys: &Sys, name: &str) -> bool {
    sys.exists(format!("/sys/module/{}", name.replace('-', "_")))
        || sys.exists(format!("/sys/bus/pci/drivers/{name}"))
}
