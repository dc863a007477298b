//! Arguments of `dropless replay`.

use std::path::PathBuf;

use anyhow::Result;

use crate::about::ensure_about;
use crate::args::{DeviceArgs, ExplainArgs, RunArgs, number};
use crate::plan::machine::parse_ports;
use crate::plan::{
    BufferPlan, ReplayPlan, Snapped, VERSION, bytes, count, duration_ns_or_zero, nonzero_ns, optional,
};

/// Send a capture again by its own times, or at a rate, and account for every packet
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless replay a.pcap --port xdp:eth1                      by its own times, gaps to the nanosecond
  dropless replay a.pcapng --port packet:eth1 --rate x2       twice as fast
  dropless replay a.pcap --port pci:0000:3b:00.0 --rate 10Gbps --loop forever
  dropless replay a.pcap --port xdp:eth1 --max-gap 1s         no pause longer than a second
  dropless replay a.pcap --port xdp:eth1 --expect 'gap_error_p99<1us' --expect 'loss==0'
  zstdcat a.pcap.zst | dropless replay - --port xdp:eth1      from any program that writes pcap")]
pub struct Args {
    /// The capture: pcap or pcapng, of any program, also compressed; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Port to send to
    #[arg(long, short = 'p', value_name = "URI", help_heading = "Path")]
    pub port: String,
    /// Further EAL arguments for DPDK, as one string
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, help_heading = "Path")]
    pub eal: Option<String>,
    /// How long to wait for a link or a peer to come up, and in the run to come back
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Path")]
    pub wait: String,

    /// original | x2 | x0.5 | 1Mpps | 10Gbps (layer 1) | 8GbpsL2 | 50% | max
    #[arg(long, value_name = "RATE", default_value = "original", help_heading = "Load")]
    pub rate: String,
    /// How often the capture is sent; 0 or forever is until Ctrl-C
    #[arg(long = "loop", value_name = "N", default_value = "1", help_heading = "Load")]
    pub loops: String,
    /// From the last packet of a loop to the first of the next, in the capture's time [default: its mean gap]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub loop_gap: Option<String>,
    /// Cut gaps of the capture that are longer
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub max_gap: Option<String>,
    /// End after this long
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub duration: Option<String>,
    /// Packets of which the capture has only the beginning
    #[arg(
        long,
        value_enum,
        default_value_t = Snapped::Send,
        help_heading = "Load"
    )]
    pub snapped: Snapped,
    /// The longest frame that is sent, with FCS [default: 1518, or what the interface carries if that is less]
    #[arg(long, value_name = "BYTES", help_heading = "Load")]
    pub max_frame: Option<usize>,
    /// Packets a burst, at most
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = number::<usize>, help_heading = "Load")]
    pub burst: usize,

    /// Memory for what is read ahead
    #[arg(long, value_name = "BYTES", default_value = "64M", help_heading = "Machine")]
    pub buffer: String,
    /// Worker core [default: chosen and printed]
    #[arg(long, value_name = "LIST", help_heading = "Machine")]
    pub cores: Option<String>,
    /// Rings, buffers and devices
    #[command(flatten)]
    pub device: DeviceArgs,

    /// Exit 1 unless it holds, e.g. 'gap_error_p99<1us', 'loss==0'; repeat for several
    #[arg(long = "expect", value_name = "CONDITION", help_heading = "Measurement")]
    pub expect: Vec<String>,
    /// What is asked about stalls
    #[command(flatten)]
    pub explain: ExplainArgs,
    /// What this prints, where it writes, and how it is watched
    #[command(flatten)]
    pub run: RunArgs,
}

impl Args {
    /// The validated plan.
    pub fn plan(&self) -> Result<ReplayPlan> {
        let loops = match self.loops.as_str() {
            "forever" => 0,
            number => count(number, "--loop")?,
        };
        ensure_about!(
            "--loop-gap",
            self.loop_gap.is_none() || loops != 1,
            "--loop-gap lies between two loops, and there is one; add --loop N, or leave it out"
        );
        let ports = parse_ports(std::slice::from_ref(&self.port), "--port")?;
        let plan = ReplayPlan {
            version: VERSION,
            command: "replay".into(),
            machine: self.device.plan(
                ports,
                self.eal.clone(),
                (self.cores.as_deref(), self.burst),
                &self.wait,
                Some(&self.explain),
            )?,
            file: self.file.clone(),
            rate: self.rate.clone(),
            loops: Some(loops).filter(|loops| *loops > 0),
            gap_max_ns: optional(self.max_gap.as_deref(), "--max-gap", duration_ns_or_zero)?,
            loop_gap_ns: optional(self.loop_gap.as_deref(), "--loop-gap", duration_ns_or_zero)?,
            snapped: self.snapped,
            frame_max: self.max_frame,
            buffer: BufferPlan::of_bytes(bytes(&self.buffer, "--buffer")?)?,
            expect: self.expect.clone(),
            duration_ns: optional(self.duration.as_deref(), "--duration", nonzero_ns)?,
        };
        plan.validate()?;
        Ok(plan)
    }
}
