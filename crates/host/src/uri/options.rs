//! Reads the `,key=value` tail of a port URI and insists that everything in it was understood.

use super::UriError;
use super::error::{Reader, hint};
use std::str::FromStr;

/// The options of one URI that have not been taken yet.
pub struct Options<'a> {
    reader: &'a Reader<'a>,
    left: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Options<'a> {
    /// Splits `parts` at `=`; refuses options the kind does not have and options given twice.
    pub fn new(reader: &'a Reader<'a>, parts: &[&'a str]) -> Result<Self, UriError> {
        let mut options = Self {
            reader,
            left: Vec::new(),
        };
        for part in parts {
            let (name, value) = part
                .split_once('=')
                .map_or((*part, None), |(name, value)| (name, Some(value)));
            if !known(reader).any(|known| known == name) {
                return Err(options.unknown(name));
            }
            if options.left.iter().any(|(other, _)| *other == name) {
                return Err(reader.wrong(format!("option {name} is given twice; give it once")));
            }
            options.left.push((name, value));
        }
        Ok(options)
    }

    fn unknown(&self, name: &str) -> UriError {
        let known: Vec<&str> = known(self.reader).collect();
        let hint = hint(name, known.iter().copied());
        let (kind, all) = (self.reader.kind.word, known.join(", "));
        self.reader
            .wrong(format!("{kind} has no option '{name}'{hint}; options: {all}"))
    }

    /// Takes an option out: whether it is there, and the text behind its `=`.
    fn take(&mut self, name: &str) -> (bool, Option<&'a str>) {
        let position = self.left.iter().position(|(other, _)| *other == name);
        position.map_or((false, None), |position| {
            (true, self.left.swap_remove(position).1)
        })
    }

    /// Whether the bare word `name` is there.
    pub fn flag(&mut self, name: &str) -> Result<bool, UriError> {
        match self.take(name) {
            (there, None) => Ok(there),
            (_, Some(value)) => Err(self.bad(name, value, "no value")),
        }
    }

    /// The value of `name`, of a type that reads itself.
    pub fn value<T: FromStr>(&mut self, name: &str, wanted: &str) -> Result<Option<T>, UriError> {
        self.value_if(name, wanted, |_| true)
    }

    /// The same, if it also passes `fits`.
    pub fn value_if<T: FromStr>(
        &mut self,
        name: &str,
        wanted: &str,
        fits: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, UriError> {
        let (there, text) = self.take(name);
        let text = text.unwrap_or_default();
        if !there {
            return Ok(None);
        }
        match text.parse() {
            Ok(value) if fits(&value) => Ok(Some(value)),
            _ => Err(self.bad(name, text, wanted)),
        }
    }

    /// An error about the value of `name`.
    fn bad(&self, name: &str, value: &str, wanted: &str) -> UriError {
        self.reader
            .wrong(format!("option {name} takes {wanted}, not '{value}'"))
    }

    /// Fails if an option is known but nobody took it: the table of options and its reader disagree.
    pub fn finish(&self) -> Result<(), UriError> {
        self.left
            .first()
            .map_or(Ok(()), |(name, _)| Err(self.unknown(name)))
    }
}

/// The options of the kind that is read.
fn known(reader: &Reader<'_>) -> impl Iterator<Item = &'static str> {
    reader.kind.options.iter().copied().chain(["queues"])
}
