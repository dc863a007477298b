//! One page that holds everything: no file beside it, no network. Text, tables and the flow are there without a
//! script; the charts are drawn by uPlot.

#![allow(
    clippy::format_collect,
    clippy::format_push_string,
    reason = "a page is put together of small pieces, and made once a run"
)]

mod data;
pub(crate) mod element;
mod figures;
pub(crate) mod flow;
pub(crate) mod sections;

use std::path::Path;

use crate::export::{self, ExportError};
use crate::load::Loaded;
use crate::number::counted;
use element::escape;

const PLOT_SCRIPT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const PLOT_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");
const PLOT_LICENCE: &str = include_str!("../../assets/uplot/LICENSE");
const SCRIPT: &str = include_str!("../../assets/page.js");
const STYLE: &str = include_str!("../../assets/page.css");

/// Writes the page of `runs` to `path`, whole or not at all.
pub fn write(path: &Path, runs: &[Loaded]) -> Result<(), ExportError> {
    export::whole(path, &page(runs)?)
}

/// The page of one run, or of several side by side.
pub fn page(runs: &[Loaded]) -> Result<String, ExportError> {
    let names: Vec<&str> = runs.iter().map(Loaded::title).collect();
    let title = if runs.len() > sections::FRAMES_MAX {
        counted(runs.len() as u64, "run")
    } else {
        escape(&names.join(", "))
    };
    let body = sections::body(runs);
    let data = data::json(runs)?;
    let version = env!("CARGO_PKG_VERSION");
    let licence = PLOT_LICENCE.replace("*/", "");
    Ok(format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none';style-src 'unsafe-inline';\
         script-src 'unsafe-inline';img-src data:\">\n\
         <title>{title} - dropless</title>\n<style>\n{PLOT_STYLE}\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>dropless: {title}</h1><button id=theme type=button hidden>Dark or light</button></header>\n\
         <main>\n{body}</main>\n\
         <footer><p>Made by dropless {version}. Charts by uPlot 1.6.32 (MIT).</p></footer>\n\
         <div id=said class=sr aria-live=polite></div>\n\
         <script type=\"application/json\" id=data>{data}</script>\n\
         <script>/*\n{licence}*/\n{PLOT_SCRIPT}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    ))
}
