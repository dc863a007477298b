//! `dropless extcap`: what Wireshark and tshark ask a program that captures for them (extcap, version 1.0).
//!
//! They start each program in their extcap directory with one of a few questions, and read lines from its standard output;
//! to capture they hand it a named pipe, into which it writes pcapng until it is told to stop.

mod install;
mod interface;

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use capture::filter::Filter;
use report::out;

use crate::run::parent;
use interface::Source;

/// Capture for Wireshark and tshark: running runs and ports become interfaces of theirs
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless extcap --install              once; then they are in Wireshark's list, and in tshark -D
  tshark -i dropless-4711 -c 10          what a running send or reflect sees
  tshark -i dropless-packet-eth1         an interface, through dropless
All other flags are for Wireshark.")]
pub struct Args {
    /// Make dropless known to Wireshark, in its directory of extcap programs
    #[arg(long, group = "task")]
    install: bool,
    /// Take that back
    #[arg(long, group = "task")]
    uninstall: bool,
    /// That directory [default: asked from tshark, else ~/.local/lib/wireshark/extcap]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// List the interfaces
    #[arg(long, group = "task", help_heading = "For Wireshark")]
    extcap_interfaces: bool,
    /// The interface that is meant
    #[arg(long, value_name = "NAME", help_heading = "For Wireshark")]
    extcap_interface: Option<String>,
    /// List its link types
    #[arg(long, group = "task", help_heading = "For Wireshark")]
    extcap_dlts: bool,
    /// List its options
    #[arg(long, group = "task", help_heading = "For Wireshark")]
    extcap_config: bool,
    /// Capture from it
    #[arg(
        long,
        group = "task",
        requires = "fifo",
        requires = "extcap_interface",
        help_heading = "For Wireshark"
    )]
    capture: bool,
    /// Where the packets go
    #[arg(long, value_name = "FILE", help_heading = "For Wireshark")]
    fifo: Option<PathBuf>,
    /// Which packets, in the syntax of tcpdump; without --capture: whether that is a filter
    #[arg(long, value_name = "FILTER", help_heading = "For Wireshark")]
    extcap_capture_filter: Option<String>,
    /// The version of Wireshark that asks
    #[arg(
        long,
        value_name = "VERSION",
        num_args = 0..=1,
        default_missing_value = "",
        help_heading = "For Wireshark"
    )]
    extcap_version: Option<String>,
    /// Of a run: what it receives (in), what it sends (out), or both
    #[arg(
        long,
        value_name = "WAY",
        default_value = "both",
        value_parser = ["in", "out", "both"],
        help_heading = "For Wireshark"
    )]
    direction: String,
    /// Bytes kept of each packet
    #[arg(long, value_name = "BYTES", help_heading = "For Wireshark")]
    snaplen: Option<u32>,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    if args.install || args.uninstall {
        return install::run(args.dir.as_deref(), args.install);
    }
    let named = args.extcap_interface.as_deref();
    let text = match named.map(Source::parse) {
        _ if args.extcap_interfaces => interface::list(),
        Some(source) => {
            let source = source?;
            if args.extcap_dlts {
                "dlt {number=1}{name=EN10MB}{display=Ethernet}\n".to_owned()
            } else if args.extcap_config {
                source.options()
            } else if let Some(fifo) = args.fifo.as_deref().filter(|_| args.capture) {
                return capture(args, &source, fifo);
            } else if let Some(filter) = &args.extcap_capture_filter {
                // What is printed is what is wrong with it.
                let wrong = Filter::compile(filter).err();
                wrong.map_or_else(String::new, |error| format!("{error}\n"))
            } else {
                bail!("Wireshark asks more than that; dropless extcap --install makes dropless known to it");
            }
        }
        None => bail!(
            "this is for Wireshark to ask; make dropless known to it: dropless extcap --install, or capture by hand: dropless capture --stdout"
        ),
    };
    out::print_stdout(&text)?;
    Ok(0)
}

/// Becomes a `dropless capture` that writes into the named pipe, and ends when that is closed or it gets a signal.
fn capture(args: &Args, source: &Source, fifo: &Path) -> Result<u8> {
    // Waits until somebody reads.
    let pipe = OpenOptions::new().write(true).open(fifo);
    let pipe = pipe.with_context(|| format!("cannot write to {}", fifo.display()))?;
    let mut command = parent::itself();
    command.args(["capture", "--stdout", "--quiet", "--no-doctor"]);
    command.arg("--runs").arg(runs());
    match source {
        Source::Run(process) => {
            command.args(["--attach", &process.to_string(), "--direction", &args.direction])
        }
        Source::Port(uri) => command.args(["--port", uri]),
    };
    if let Some(snaplen) = args.snaplen {
        command.args(["--snaplen", &snaplen.to_string()]);
    }
    if let Some(filter) = args
        .extcap_capture_filter
        .as_deref()
        .filter(|filter| !filter.trim().is_empty())
    {
        command.args(["--filter", filter]);
    }
    Err(anyhow!(command.stdout(pipe).exec()).context("dropless capture"))
}

/// Where run directories go: not into whatever directory Wireshark was started in.
fn runs() -> PathBuf {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("dropless/extcap")
}
