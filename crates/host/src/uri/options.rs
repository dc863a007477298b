//! Reads the `,key=value` tail of a port URI and insists that everything in it was understood.

use super::UriError;
use crate::nearest::nearest;
use std::str::FromStr;

/// The options of one URI that have not been taken yet.
pub struct Options<'a> {
    uri: &'a str,
    kind: &'static str,
    known: &'static [&'static str],
    left: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Options<'a> {
    /// Splits `parts` at `=`; refuses options the kind does not have and options given twice.
    pub fn new(
        uri: &'a str,
        kind: &'static str,
        known: &'static [&'static str],
        parts: &[&'a str],
    ) -> Result<Self, UriError> {
        let mut left: Vec<(&str, Option<&str>)> = Vec::new();
        for part in parts {
            let (name, value) = part
                .split_once('=')
                .map_or((*part, None), |(name, value)| (name, Some(value)));
            if !known.contains(&name) {
                let suggestion = nearest(name, known.iter().copied()).map(str::to_owned);
                let option = name.to_owned();
                return Err(UriError::UnknownOption {
                    uri: uri.to_owned(),
                    kind,
                    option,
                    suggestion,
                    options: known,
                });
            }
            if left.iter().any(|(other, _)| *other == name) {
                return Err(UriError::Twice {
                    uri: uri.to_owned(),
                    option: name.to_owned(),
                });
            }
            left.push((name, value));
        }
        Ok(Self {
            uri,
            kind,
            known,
            left,
        })
    }

    /// Takes an option out: whether it is there, and the text behind its `=`.
    fn take(&mut self, name: &str) -> (bool, Option<&'a str>) {
        let position = self.left.iter().position(|(other, _)| *other == name);
        position.map_or((false, None), |position| {
            (true, self.left.swap_remove(position).1)
        })
    }

    /// Whether the bare word `name` is there.
    pub fn flag(&mut self, name: &'static str) -> Result<bool, UriError> {
        match self.take(name) {
            (there, None) => Ok(there),
            (_, Some(value)) => Err(self.bad(name, value, "no value")),
        }
    }

    /// The value of `name`, of a type that reads itself.
    pub fn value<T: FromStr>(
        &mut self,
        name: &'static str,
        wanted: &'static str,
    ) -> Result<Option<T>, UriError> {
        self.value_if(name, wanted, |_| true)
    }

    /// The same, if it also passes `fits`.
    pub fn value_if<T: FromStr>(
        &mut self,
        name: &'static str,
        wanted: &'static str,
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
    pub fn bad(&self, name: &'static str, value: &str, wanted: &'static str) -> UriError {
        UriError::BadValue {
            uri: self.uri.to_owned(),
            option: name,
            value: value.to_owned(),
            wanted,
        }
    }

    /// Fails if an option is known but nobody took it: the table of options and its reader disagree.
    pub fn finish(&self) -> Result<(), UriError> {
        let Some((name, _)) = self.left.first() else {
            return Ok(());
        };
        let (option, suggestion) = ((*name).to_owned(), None);
        let uri = self.uri.to_owned();
        Err(UriError::UnknownOption {
            uri,
            kind: self.kind,
            option,
            suggestion,
            options: self.known,
        })
    }
}
