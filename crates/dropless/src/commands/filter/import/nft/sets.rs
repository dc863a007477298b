//! Named sets and maps.

use std::collections::HashMap;

use serde_json::Value;

use super::super::conditions::{Read, unfit};
use super::{flags, list, only, table_of};

/// Whether what an element has beside its value leaves open which packets it is met by.
pub fn does_nothing(key: &str) -> bool {
    matches!(key, "comment" | "counter" | "last")
}

/// Of all tables.
pub struct Sets<'o> {
    named: HashMap<(String, &'o str), &'o Value>,
    maps: HashMap<(String, &'o str), &'o Value>,
    /// Those that rules write into, and how many rules do.
    changing: HashMap<(String, String), u32>,
}

impl<'o> Sets<'o> {
    pub fn new(objects: &'o [Value], changing: HashMap<(String, String), u32>) -> Self {
        let named = |kind: &str| {
            let found = objects.iter().filter_map(|object| object.get(kind));
            let named =
                found.filter_map(|object| Some(((table_of(object), object["name"].as_str()?), object)));
            named.collect()
        };
        Self {
            named: named("set"),
            maps: named("map"),
            changing,
        }
    }

    /// The elements of a set that stay as they are; empty ones have none.
    pub fn set(&self, table: &str, name: &str) -> Read<&'o [Value]> {
        self.elements(&self.named, table, name)
    }

    /// The same of a map, each with its value.
    pub fn map(&self, table: &str, name: &str) -> Read<&'o [Value]> {
        self.elements(&self.maps, table, name)
    }

    /// All that a map has now, whether or not that stays so.
    pub fn map_now(&self, table: &str, name: &str) -> Option<&'o Value> {
        Some(&self.maps.get(&(table.to_owned(), name))?["elem"])
    }

    /// Whether the elements of a set are forgotten by time alone, or shared by several rules: a rate for each would then
    /// be another than ours.
    pub fn is_for_one_rate(&self, table: &str, name: &str) -> bool {
        let name = name.trim_start_matches('@');
        let key = (table.to_owned(), name);
        let keeps = self
            .named
            .get(&key)
            .is_some_and(|set| set.get("timeout").is_none());
        keeps && self.changing.get(&(table.to_owned(), name.to_owned())) == Some(&1)
    }

    fn elements(
        &self,
        from: &HashMap<(String, &'o str), &'o Value>,
        table: &str,
        name: &str,
    ) -> Read<&'o [Value]> {
        let name = name.trim_start_matches('@');
        let Some(found) = from.get(&(table.to_owned(), name)) else {
            return unfit(format!("there is no set {name}"));
        };
        let is_told = flags(found).any(|flag| flag == "dynamic" || flag == "timeout");
        let is_written = self.changing.contains_key(&(table.to_owned(), name.to_owned()));
        if is_told || is_written || found.get("timeout").is_some() {
            return unfit(format!("the elements of set {name} come and go"));
        }
        let counts = |each: &Value| only(each).is_some_and(|(key, _)| does_nothing(key));
        if !found.get("stmt").map_or(&[][..], list).iter().all(counts) {
            return unfit(format!(
                "the elements of set {name} have more than a counter, such as a rate"
            ));
        }
        Ok(found["elem"].as_array().map_or(&[][..], Vec::as_slice))
    }
}
