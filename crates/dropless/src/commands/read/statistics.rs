//! Who talks to whom: counted, and told as tables for people, or as an object a line for scripts.

use anyhow::{Context, Result};
use capture::input::Packet;
use dissect::flow::{Connection, Connections, Count, End, Evicted, Talker, Talkers};
use dissect::{Clock, TimeFormat, View};
use serde::Serialize;

use super::args::Args;
use super::tables;
use crate::plan::{nonzero_count, optional};
use crate::run::output::Output;

/// What was counted, and how it is to be shown.
pub struct Statistics {
    all: Count,
    top: Option<(usize, Talkers)>,
    connections: Option<Connections>,
    is_json: bool,
    clock: Clock,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
enum Line<'s> {
    Talker {
        #[serde(flatten)]
        talker: &'s Talker,
    },
    Connection {
        protocol: u8,
        protocol_name: Option<&'static str>,
        from: End,
        to: End,
        sent: Count,
        returned: Count,
        first: Option<String>,
        last: Option<String>,
        flags_sent: Option<String>,
        flags_returned: Option<String>,
    },
    Summary {
        version: u32,
        #[serde(flatten)]
        all: Count,
        not_ip: Count,
        /// Addresses beyond those that `--top` asked for.
        more_addresses: usize,
        forgotten_addresses: Evicted,
        forgotten_connections: Evicted,
    },
}

impl Statistics {
    /// As `args` ask.
    pub fn new(args: &Args) -> Result<Self> {
        let max = nonzero_count(&args.flows_max, "--flows-max")?;
        let max = usize::try_from(max).context("--flows-max")?;
        let top = optional(args.top.as_deref(), "--top", nonzero_count)?;
        let top = top.map(usize::try_from).transpose().context("--top")?;
        // An hour without its day says little of what may have lasted for days.
        let format = match args.time {
            _ if args.json => TimeFormat::Iso,
            Some(time) => time.format(),
            None => TimeFormat::Date,
        };
        Ok(Self {
            all: Count::default(),
            top: top.map(|top| (top, Talkers::new(max))),
            connections: args.connections.then(|| Connections::new(max)),
            is_json: args.json,
            clock: Clock::new(format, args.utc || args.json),
        })
    }

    /// Counts a packet.
    #[inline]
    pub fn add(&mut self, packet: &Packet<'_>) {
        let view = View::of(packet);
        self.all.add(packet.original_len);
        if let Some((_, talkers)) = &mut self.top {
            talkers.add(&view, packet.original_len);
        }
        if let Some(connections) = &mut self.connections {
            connections.add(&view, packet.time_ns, packet.original_len);
        }
    }

    /// Writes all of it.
    pub fn write(&mut self, output: &mut Output) -> Result<()> {
        let (top, talkers) = self.top.take().unzip();
        let talkers = talkers.map(Talkers::finish);
        let connections = self.connections.take().map(Connections::finish);
        let (mut talkers, forgotten_addresses, not_ip) = talkers.unwrap_or_default();
        let more_addresses = talkers.len().saturating_sub(top.unwrap_or_default());
        talkers.truncate(top.unwrap_or_default());
        let (connections, forgotten_connections, no_connection) = connections.unwrap_or_default();
        // Both counted the same packets, or one of them none.
        let not_ip = if not_ip.packets > 0 { not_ip } else { no_connection };
        if self.is_json {
            for talker in &talkers {
                put_json(output, &Line::Talker { talker })?;
            }
            for connection in &connections {
                let line = self.line(connection);
                put_json(output, &line)?;
            }
            return put_json(
                output,
                &Line::Summary {
                    version: 1,
                    all: self.all,
                    not_ip,
                    more_addresses,
                    forgotten_addresses,
                    forgotten_connections,
                },
            );
        }
        if !talkers.is_empty() {
            output.text.put(&tables::of_talkers(&talkers, more_addresses));
        }
        if !connections.is_empty() {
            let table = tables::of_connections(&connections, &mut self.clock);
            output.text.put(&table);
        }
        let forgotten = [
            (&forgotten_addresses, "addresses"),
            (&forgotten_connections, "connections"),
        ];
        output.text.put(&tables::sentence(&self.all, &not_ip, forgotten));
        Ok(())
    }

    fn line(&mut self, connection: &Connection) -> Line<'static> {
        let (flags_sent, flags_returned) = connection.flag_letters().unzip();
        let (first, last) = connection.times_ns.unzip();
        Line::Connection {
            protocol: connection.protocol,
            protocol_name: connection.protocol_name(),
            from: connection.from,
            to: connection.to,
            sent: connection.sent,
            returned: connection.returned,
            first: first.map(|first| tables::time(&mut self.clock, first, 9)),
            last: last.map(|last| tables::time(&mut self.clock, last, 9)),
            flags_sent,
            flags_returned,
        }
    }
}

fn put_json(output: &mut Output, line: &Line<'_>) -> Result<()> {
    output.text.put(&serde_json::to_string(line)?).put("\n");
    output.look()
}
