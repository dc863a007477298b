//! Arguments of `dropless tune`.

use std::path::PathBuf;

/// Keep everything else off the cores that poll, and take it back
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless tune --cores 2-5                       shows what it would change, and changes nothing
  dropless tune --cores 2-5 --apply               changes it, and reads back what took effect
  dropless tune --cores 2-5 --prove               measures, changes it, and measures again
  dropless tune --undo                            restores every value, also after a crash
  dropless tune --cores 2-5 --nic pci:0000:3b:00.0 --apply     binds the NIC for DPDK, too
  dropless tune --cores 2-5 --boot                prints the kernel command line, explained

Exit codes: 0 done; 1 something was refused, or left as somebody else made it; 2 could not.")]
pub struct Args {
    /// Cores that will poll, e.g. 2-3,6; needed for a change, some are proposed for a plan
    #[arg(long, value_name = "LIST")]
    pub cores: Option<String>,
    /// Port that will be used: a PCI function is bound for DPDK; repeat for several
    #[arg(long = "nic", value_name = "URI", conflicts_with = "undo")]
    pub nics: Vec<String>,
    /// Show the plan and change nothing (the default)
    #[arg(long, conflicts_with_all = ["apply", "undo", "write"])]
    pub dry_run: bool,
    /// Make the changes that work now
    #[arg(long, conflicts_with_all = ["undo", "boot"])]
    pub apply: bool,
    /// Make the changes, and measure with `noise` before and after
    #[arg(long, conflicts_with_all = ["undo", "boot", "dry_run"])]
    pub prove: bool,
    /// With --prove: how long each of the two measurements is
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5s",
        requires = "prove",
        conflicts_with_all = ["undo", "boot", "dry_run"]
    )]
    pub duration: String,
    /// Take back everything that was applied or installed
    #[arg(long, conflicts_with_all = ["cores", "boot"])]
    pub undo: bool,
    /// Print the kernel command line for these cores
    #[arg(long)]
    pub boot: bool,
    /// With --boot: install it as a drop-in of GRUB's
    #[arg(long, requires = "boot", conflicts_with_all = ["apply", "prove", "undo"])]
    pub write: bool,
    /// Bind a NIC although this machine is reached through it
    #[arg(long, requires = "nics", conflicts_with = "undo")]
    pub force: bool,
    /// Where each change is written down before it is made
    #[arg(long, value_name = "FILE", default_value = doctor::tune::journal::DEFAULT)]
    pub journal: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
