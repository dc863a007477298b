//! A change that tune makes.

use crate::Change;
use host::PciAddress;
use host::cores::CoreSet;
use serde::Serialize;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum Action {
    /// A file of the kernel's holds another value.
    Write(Change),
    /// An ordinary file has this text, and a service is started again for it.
    Text {
        /// The file.
        path: String,
        /// Its whole text.
        text: String,
        /// The service.
        #[serde(skip_serializing_if = "Option::is_none")]
        service: Option<String>,
    },
    /// The cores are an isolated cpuset partition.
    Partition {
        /// Which.
        cores: CoreSet,
    },
    /// A PCI function is bound to a driver.
    Bind {
        /// The function.
        address: PciAddress,
        /// The driver.
        driver: String,
    },
    /// A module is loaded.
    Load {
        /// Its name.
        module: String,
    },
}

impl Action {
    /// What is changed.
    pub fn target(&self) -> String {
        match self {
            Self::Write(Change { path, .. }) | Self::Text { path, .. } => path.clone(),
            Self::Partition { .. } => "cpuset partition".into(),
            Self::Bind { address, .. } => format!("driver of {address}"),
            Self::Load { module } => format!("module {module}"),
        }
    }

    /// What it shall be.
    pub fn wanted(&self) -> String {
        match self {
            Self::Write(change) => change.value.clone(),
            Self::Text { text, .. } => text.lines().next_back().unwrap_or_default().into(),
            Self::Partition { cores } => format!("cores {cores} isolated"),
            Self::Bind { driver, .. } => driver.clone(),
            Self::Load { .. } => "loaded".into(),
        }
    }
}

/// A change, and what it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The check that asked for it.
    pub check: String,
    /// What is wrong without it.
    pub why: String,
    /// What is done.
    #[serde(flatten)]
    pub action: Action,
}
