//! Lists of FIELD=VALUE, as users write them.

use std::collections::BTreeSet;

/// The first field that stands a second time in these items, each FIELD=VALUE or a field alone.
pub fn given_twice<'t>(items: impl IntoIterator<Item = &'t str>) -> Option<&'t str> {
    let fields = items
        .into_iter()
        .map(|item| item.split_once('=').map_or(item, |(field, _)| field));
    let mut seen = BTreeSet::new();
    fields.into_iter().find(|field| !seen.insert(*field))
}

#[cfg(test)]
mod tests {
    use super::given_twice;

    #[test]
    fn a_field_is_known_whatever_its_value() {
        assert_eq!(given_twice(["a=1", "b=1", "c", "b=2", "a=1"]), Some("b"));
        assert_eq!(given_twice(["a=1", "b=a=1", "c"]), None);
    }
}
