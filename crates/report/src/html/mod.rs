//! One page that holds everything: no file beside it, no network. Text, tables and the flow are there without a
//! script; the charts are drawn by uPlot.

mod data;
pub(crate) mod element;
mod figures;
pub(crate) mod flow;
pub(crate) mod sections;

use std::path::Path;

use maud::{DOCTYPE, PreEscaped, html};

use crate::export::{self, ExportError};
use crate::input::is_unsafe;
use crate::load::Loaded;
use crate::number::counted;

const PLOT_SCRIPT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const PLOT_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");
const PLOT_LICENCE: &str = include_str!("../../assets/uplot/LICENSE");
const SCRIPT: &str = include_str!("../../assets/page.js");
const STYLE: &str = include_str!("../../assets/page.css");
/// Nothing from elsewhere is fetched, whatever a name says.
const ALLOWED: &str = "default-src 'none';style-src 'unsafe-inline';script-src 'unsafe-inline';img-src data:";

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
        names.join(", ")
    };
    let data = data::json(runs)?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(ALLOWED);
                title { (title) " - dropless" }
                style { (PreEscaped(PLOT_STYLE)) "\n" (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "dropless: " (title) }
                    button #theme type="button" hidden { "Dark or light" }
                }
                main { (sections::body(runs)) }
                footer { p { "Made by dropless " (env!("CARGO_PKG_VERSION")) ". Charts by uPlot 1.6.32 (MIT)." } }
                div #said .sr aria-live="polite" {}
                script #data type="application/json" { (PreEscaped(data)) }
                script { "/*\n" (PreEscaped(PLOT_LICENCE.replace("*/", ""))) "*/\n" (PreEscaped(PLOT_SCRIPT)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
        "\n"
    };
    // Names come from elsewhere: none may carry control characters into the page, or turn its writing round. What is ours
    // has no more of them than ends of lines, which in a name are white space.
    let is_foreign = |character| is_unsafe(character) && character != '\n';
    Ok(page.into_string().replace(is_foreign, "\u{fffd}"))
}
