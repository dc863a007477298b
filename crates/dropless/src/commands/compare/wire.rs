//! The virtual wire: two network namespaces of our own, which go whatever happens.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use report::published::own_id;

use super::plan::{FAR, NEAR};

/// Namespaces of comparisons begin with this; then the process id and the end follow.
const PREFIX: &str = "dropless-compare-";
const NAMESPACES: &str = "/run/netns";

/// Two namespaces with a wire between them. Dropped, they are gone.
pub struct Wire {
    near: String,
    far: String,
}

impl Wire {
    /// Lays it. What killed comparisons left behind is taken away first.
    pub fn lay() -> Result<Self> {
        sweep();
        let id = own_id();
        let wire = Self {
            near: format!("{PREFIX}{id}-near"),
            far: format!("{PREFIX}{id}-far"),
        };
        for namespace in [&wire.near, &wire.far] {
            ip(&format!("netns add {namespace}"))?;
            // The kernel says nothing of its own on the wire.
            let silent = "sysctl -qw net.ipv6.conf.default.disable_ipv6=1";
            let _ = ip(&format!("netns exec {namespace} {silent}"));
            ip(&format!("-n {namespace} link set lo up"))?;
        }
        // A second queue lets each AF_XDP socket work in one direction (decision 0011); to the others it is all one.
        let queues = "numtxqueues 2 numrxqueues 2";
        let Self { near, far } = &wire;
        ip(&format!(
            "link add near0 netns {near} {queues} type veth peer name far0 netns {far} {queues}"
        ))?;
        for (namespace, interface) in wire.ends() {
            ip(&format!("-n {namespace} link set {interface} up"))?;
        }
        Ok(wire)
    }

    fn ends(&self) -> [(&str, &str); 2] {
        [(&self.near, "near0"), (&self.far, "far0")]
    }

    /// The sender's namespace.
    pub fn near(&self) -> &str {
        &self.near
    }

    /// The reflector's namespace.
    pub fn far(&self) -> &str {
        &self.far
    }

    /// Gives the kernels their addresses, or takes them: a kernel with the address of a reflector answers beside it.
    pub fn address(&self, kernels: bool) -> Result<()> {
        for ((namespace, interface), address) in self.ends().into_iter().zip([NEAR, FAR]) {
            ip(&format!("-n {namespace} address flush dev {interface}"))?;
            if kernels {
                ip(&format!(
                    "-n {namespace} address add {address}/24 dev {interface}"
                ))?;
            }
        }
        Ok(())
    }

    /// Rules that every packet passes and none matches, at both ends.
    pub fn firewall(&self, rules: u32) -> Result<()> {
        let mut text = String::from(
            "table inet dropless {\n chain input {\n  type filter hook input priority 0; policy accept;\n",
        );
        for rule in 0..rules {
            // Addresses of documentation (RFC 5737), which nobody sends from.
            let (last, port) = (rule % 254 + 1, 10_000 + rule);
            let _ = writeln!(text, "  ip saddr 203.0.113.{last} udp dport {port} drop");
        }
        text.push_str(" }\n}\n");
        self.nft(&text)
            .with_context(|| format!("nft does not accept {rules} rules"))
    }

    /// Takes the rules away.
    pub fn no_firewall(&self) -> Result<()> {
        self.nft("delete table inet dropless\n")
            .context("nft does not delete the rules")
    }

    /// Has nft do something at both ends.
    fn nft(&self, text: &str) -> Result<()> {
        for (namespace, _) in self.ends() {
            let mut child = Command::new("ip")
                .args(["netns", "exec", namespace, "nft", "-f", "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .context("cannot start nft")?;
            if let Some(mut stdin) = child.stdin.take() {
                stdin
                    .write_all(text.as_bytes())
                    .context("it does not read its input")?;
            }
            let output = child.wait_with_output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{}", said.trim());
        }
        Ok(())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for namespace in [&self.near, &self.far] {
            let _ = ip(&format!("netns delete {namespace}"));
        }
    }
}

/// Takes away the namespaces of comparisons that are no more.
fn sweep() {
    for entry in std::fs::read_dir(NAMESPACES).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = name.strip_prefix(PREFIX).and_then(|rest| {
            let id = rest.strip_suffix("-near").or_else(|| rest.strip_suffix("-far"))?;
            id.parse::<u32>().ok()
        });
        let is_alive = |id: u32| {
            // Whatever the program is called: a comparison has the word among its arguments.
            let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == b"compare")
        };
        if ours.is_some_and(|id| !is_alive(id)) {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

/// Runs ip(8) with these words.
fn ip(arguments: &str) -> Result<()> {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .stdin(Stdio::null())
        .output()
        .context("cannot start ip(8)")?;
    ensure!(
        output.status.success(),
        "ip {arguments}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
