//! When two texts of a kernel file are the same value: it prints masks, lists and choices its own way.

use host::cores::CoreSet;

/// What is to be written to get the value that a file showed: of `always [madvise] never` the one in brackets.
pub fn writable(text: &str) -> &str {
    let chosen = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(chosen, _)| chosen);
    match text.trim() {
        "(null)" => "",
        // `cpu.max` shows its period, too, which nobody sets along with "max".
        plain if plain.starts_with("max ") => "max",
        plain => chosen.unwrap_or(plain),
    }
}

/// Whether both mean the same.
pub fn same(one: &str, other: &str) -> bool {
    let (one, other) = (writable(one), writable(other));
    if one == other || switch(one).is_some_and(|on| switch(other) == Some(on)) {
        return true;
    }
    match (mask(one), mask(other)) {
        (Some(one), Some(other)) => one == other,
        _ => listed(one).is_some_and(|cores| listed(other) == Some(cores)),
    }
}

/// Whether what took effect is what was wanted, or a part of it: the kernel chooses one core of those it is given.
pub fn within(effective: &str, wanted: &str) -> bool {
    if same(effective, wanted) {
        return true;
    }
    match (listed(effective), listed(wanted)) {
        (Some(effective), Some(wanted)) => !effective.is_empty() && effective.without(&wanted).is_empty(),
        _ => false,
    }
}

fn listed(text: &str) -> Option<CoreSet> {
    text.parse().ok().filter(|cores: &CoreSet| !cores.is_empty())
}

/// Parameters of modules read `Y` where 1 was written.
fn switch(text: &str) -> Option<bool> {
    match text {
        "Y" | "y" | "1" => Some(true),
        "N" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// A mask without its leading zeros. The kernel prints groups of eight digits: what has others is a list.
fn mask(text: &str) -> Option<String> {
    let mut groups = text.split(',');
    let first = groups.next()?;
    let digits = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    let rest: Vec<&str> = groups.collect();
    if !digits(first) || rest.iter().any(|group| group.len() != 8 || !digits(group)) {
        return None;
    }
    let joined = format!("{first}{}", rest.concat()).to_ascii_lowercase();
    Some(joined.trim_start_matches('0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_spelling_is_the_same_value() {
        for (one, other) in [
            ("always [madvise] never", "madvise"),
            ("0-1", "0,1"),
            ("00000000,0000000f", "f"),
            ("F", "0f"),
            ("(null)", ""),
            ("Y", "1"),
            ("max 100000", "max"),
        ] {
            assert!(same(one, other) && same(other, one), "{one} {other}");
        }
    }

    #[test]
    fn other_values_are_others() {
        for (one, other) in [
            ("[always] madvise never", "madvise"),
            ("0,1", "1"),
            ("3", "1"),
            ("00000001,00000000", "1"),
            ("", "0"),
            (
                "isolated",
                "isolated invalid (Cpu list in cpuset.cpus not exclusive)",
            ),
        ] {
            assert!(!same(one, other) && !same(other, one), "{one} {other}");
        }
    }

    #[test]
    fn one_core_of_those_given_is_an_effect_as_wanted() {
        assert!(within("2", "0-3") && within("0,1", "0-1"));
        assert!(!within("4", "0-3") && !within("", "0-3") && !within("1-4", "0-3"));
    }
}
