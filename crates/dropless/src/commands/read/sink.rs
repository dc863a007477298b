//! Where packets go: lines for people, lines for scripts, or statistics.

use anyhow::Result;
use capture::input::Packet;
use dissect::{Clock, Printer, Show, TimeFormat};
use serde::Serialize;

use super::args::{Args, Time};
use super::statistics::Statistics;
use crate::run::output::Output;

enum Form {
    Lines(Printer),
    Json(Clock),
    Statistics(Box<Statistics>),
}

/// Takes packets one after the other.
pub struct Sink {
    form: Form,
    output: Output,
    is_json: bool,
}

/// What stands among the lines of JSON and is no packet.
#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
enum Event<'e> {
    /// The capture was killed: its ring has no end.
    CaptureDied { ring: &'e str },
}

impl Sink {
    /// What was asked for.
    pub fn new(args: &Args) -> Result<Self> {
        let form = if args.top.is_some() || args.connections {
            Form::Statistics(Box::new(Statistics::new(args)?))
        } else if args.json {
            Form::Json(Clock::new(TimeFormat::Iso, true))
        } else {
            let show = Show {
                ethernet: args.ethernet,
            };
            let format = args.time.map_or(TimeFormat::Clock, Time::format);
            Form::Lines(Printer::new(Clock::new(format, args.utc), show))
        };
        Ok(Self {
            form,
            output: Output::new(),
            is_json: args.json,
        })
    }

    /// Whether nobody reads any more.
    pub fn is_closed(&self) -> bool {
        self.output.is_closed()
    }

    /// Whether it says nothing before the end.
    pub fn is_silent(&self) -> bool {
        matches!(self.form, Form::Statistics(_))
    }

    /// Takes a packet.
    #[inline]
    pub fn take(&mut self, packet: &Packet<'_>) -> Result<()> {
        match &mut self.form {
            Form::Lines(printer) => printer.line(&mut self.output.text, packet),
            Form::Json(clock) => dissect::json(&mut self.output.text, clock, packet),
            Form::Statistics(statistics) => {
                statistics.add(packet);
                return Ok(());
            }
        }
        self.output.look()
    }

    /// The capture whose ring is read was killed; for programs only.
    pub fn tell_died(&mut self, ring: &str) -> Result<()> {
        if self.is_json {
            let line = serde_json::to_string(&Event::CaptureDied { ring })?;
            self.output.text.put(&line).put("\n");
        }
        self.output.look()
    }

    /// Writes what was taken so far.
    pub fn flush(&mut self) -> Result<()> {
        self.output.flush()
    }

    /// Writes the rest.
    pub fn finish(&mut self) -> Result<()> {
        if let Form::Statistics(statistics) = &mut self.form {
            statistics.write(&mut self.output)?;
        }
        self.output.flush()
    }
}
