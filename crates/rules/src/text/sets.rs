//! Named sets: values that rules use by `@name`.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::Prefix;

/// Values as they were written, and what they are once a rule asked.
pub(super) struct Set {
    /// Where a value stands, if it is from a file, and the value.
    values: Vec<(Option<u32>, String)>,
    file: Option<String>,
    prefixes: OnceCell<Result<Arc<Vec<Prefix>>, String>>,
}

impl Set {
    pub(super) fn of_words(words: impl Iterator<Item = String>) -> Self {
        Self {
            values: words.map(|word| (None, word)).collect(),
            file: None,
            prefixes: OnceCell::new(),
        }
    }

    /// One value a line; what follows `#` or `;` is a comment.
    pub(super) fn of_file(name: String, text: &str) -> Self {
        let value = |line: &str| {
            line.split(['#', ';'])
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let values = (1..)
            .zip(text.lines())
            .map(|(number, line)| (Some(number), value(line)));
        Self {
            values: values.filter(|(_, value)| !value.is_empty()).collect(),
            file: Some(name),
            prefixes: OnceCell::new(),
        }
    }

    /// Each value by itself; with the place of the one that is wrong.
    pub(super) fn each<T>(&self, mut read: impl FnMut(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
        let each = |(line, value): &(Option<u32>, String)| {
            read(value).map_err(|what| match (&self.file, line) {
                (Some(file), Some(line)) => format!("{file}:{line}: {what}"),
                _ => what,
            })
        };
        self.values.iter().map(each).collect()
    }

    /// As addresses, in order, read once.
    pub(super) fn prefixes(&self) -> Result<Arc<Vec<Prefix>>, String> {
        let read = || self.each(str::parse).map(|prefixes| Arc::new(in_order(prefixes)));
        self.prefixes.get_or_init(read).clone()
    }
}

/// Sorted, each one once.
pub(super) fn in_order(mut prefixes: Vec<Prefix>) -> Vec<Prefix> {
    prefixes.sort_unstable();
    prefixes.dedup();
    prefixes
}

/// All sets, by name.
#[derive(Default)]
pub(super) struct Sets {
    known: HashMap<String, Set>,
    /// Names whose definition is wrong, which is told there, and once.
    wrong: HashSet<String>,
}

impl Sets {
    pub(super) fn define(&mut self, name: &str, set: Set) -> Result<(), String> {
        match self.known.entry(name.into()) {
            std::collections::hash_map::Entry::Occupied(_) => {
                Err(format!("`{name}` is defined already; take another name"))
            }
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(set);
                Ok(())
            }
        }
    }

    /// A definition of that name is wrong.
    pub(super) fn is_wrong(&mut self, name: &str) {
        if !self.known.contains_key(name) {
            self.wrong.insert(name.into());
        }
    }

    /// Whether this word of a rule names a set whose definition is wrong: what is wrong with the rule is that.
    pub(super) fn has_wrong(&self, word: &str) -> bool {
        word.strip_prefix('@')
            .is_some_and(|name| self.wrong.contains(name))
    }

    pub(super) fn get(&self, name: &str) -> Result<&Set, String> {
        self.known.get(name).ok_or_else(|| {
            let near = super::names::nearest(name, self.known.keys().map(String::as_str));
            let hint = near.map_or_else(
                || format!("write `define {name} = ...` above"),
                |near| format!("did you mean @{near}?"),
            );
            format!("no set has the name `{name}`; {hint}")
        })
    }
}
